-- The platform's cycles of the contract's renewals: JSON list of [renewal, cycle], one for each renewal whose cycle does
-- not follow the cycle of the renewal before. NULL if each renewal has its cycle's number.
ALTER TABLE contract_reads ADD COLUMN renewals TEXT;

-- Which process exchanges an ID token of a shop for tokens, and until when no other process does. The shop may be new.
CREATE TABLE token_exchanges (
  domain TEXT PRIMARY KEY,
  process TEXT NOT NULL,
  ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A warning about a shop's new domain outlives the connection: after an uninstallation, requests about personal data
-- name that domain. SQLite cannot change a foreign key, so the table is made again.
CREATE TABLE warnings_of_shops (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  since INTEGER NOT NULL,
  logged_at INTEGER NOT NULL,
  PRIMARY KEY (shop_id, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO warnings_of_shops (shop_id, kind, text, since, logged_at)
  SELECT shop_id, kind, text, since, logged_at FROM platform_warnings;
DROP TABLE platform_warnings;
ALTER TABLE warnings_of_shops RENAME TO platform_warnings;

CREATE TRIGGER platform_warnings_of_removed_shop BEFORE INSERT ON platform_warnings
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- Which process loads the shop, and until when no other process does; null if no process does.
ALTER TABLE syncs ADD COLUMN holder TEXT;
ALTER TABLE syncs ADD COLUMN held_until INTEGER;
-- JSON: how far the load is, for the settings page and commands.
ALTER TABLE syncs ADD COLUMN progress TEXT;
