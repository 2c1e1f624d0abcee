-- Who made the key, as the settings page names people: "staff 42", "session", "command line". NULL for older keys.
ALTER TABLE api_keys ADD COLUMN created_by TEXT;

-- Finds the newest test event of a shop.
CREATE INDEX deliveries_test ON deliveries (shop_id, number) WHERE test;

-- What fails in a shop, or failed before, by its cause: see `Alert`.
CREATE TABLE alerts (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  cause TEXT NOT NULL CHECK (cause IN ('connection', 'endpoint', 'dead')),
  since INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  host TEXT,
  error TEXT,
  -- When it was well again; NULL while it fails.
  well_at INTEGER,
  -- Whether somebody was told that it fails, and was not told yet that it is well again.
  told INTEGER NOT NULL DEFAULT 0,
  -- When somebody was told last that it fails.
  told_at INTEGER,
  PRIMARY KEY (shop_id, cause)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER alerts_of_removed_shop BEFORE INSERT ON alerts
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;
