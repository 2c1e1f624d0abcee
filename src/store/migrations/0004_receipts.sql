-- The same by when the platform sent them off, which it says alike each time it sends one: ids by chance alone would have each of them
-- written to a page of its own. What was remembered before is forgotten; one that comes again is processed again, which changes nothing.
DROP TABLE platform_webhooks;
CREATE TABLE platform_webhooks (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  triggered_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (shop_id, triggered_at, id)
) STRICT, WITHOUT ROWID;
