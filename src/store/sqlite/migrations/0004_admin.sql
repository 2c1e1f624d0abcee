-- The settings page: who may open it, and indexes for what it shows.

-- One-time addresses that sign somebody in. Of the token in one, as of the token of a session, only the SHA-256 is kept.
CREATE TABLE admin_links (
  hash BLOB PRIMARY KEY,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX admin_links_of_shop ON admin_links (shop_id);

CREATE TABLE admin_sessions (
  hash BLOB PRIMARY KEY,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX admin_sessions_of_shop ON admin_sessions (shop_id);

-- Webhooks and workflow triggers have a log each: the last of one kind are found however many there are of the other.
DROP INDEX deliveries_of_shop;
CREATE INDEX deliveries_of_shop ON deliveries (shop_id, kind, number);
-- Covers counting the dead of a kind, also of those queued since a time.
DROP INDEX deliveries_dead;
CREATE INDEX deliveries_dead ON deliveries (shop_id, kind, number, created_at) WHERE status = 'dead';

-- When a shop's last webhook came.
CREATE INDEX platform_webhooks_of_shop ON platform_webhooks (shop_id, received_at);
