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

-- E-mail addresses that want to be told of alerts.
CREATE TABLE alert_addresses (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  -- The token of the links in its e-mails: its SHA-256 to find it, and the sealed token to write the links.
  hash BLOB NOT NULL UNIQUE,
  sealed BLOB NOT NULL,
  added_at INTEGER NOT NULL,
  -- NULL until somebody opens the link in the first e-mail.
  confirmed_at INTEGER,
  -- A removed address stays without its text for a day, to limit how many e-mails ask to confirm.
  removed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX alert_addresses_of_shop ON alert_addresses (shop_id, address) WHERE removed_at IS NULL;
CREATE INDEX alert_addresses_by_time ON alert_addresses (shop_id, added_at);

CREATE TRIGGER alert_addresses_of_removed_shop BEFORE INSERT ON alert_addresses
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- Notices to send. A notice is removed when it was sent.
CREATE TABLE alert_notices (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  -- The address of an e-mail; NULL for a post to the operator.
  address INTEGER REFERENCES alert_addresses (number) ON DELETE CASCADE,
  -- JSON of the alert; NULL for an e-mail that asks to confirm the address.
  alert TEXT,
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  -- A process that sends the notice sets a later time before, so that no other process sends it too.
  next_attempt_at INTEGER NOT NULL
) STRICT;
CREATE INDEX alert_notices_due ON alert_notices (next_attempt_at);
CREATE INDEX alert_notices_of_shop ON alert_notices (shop_id);
CREATE INDEX alert_notices_of_address ON alert_notices (address);

CREATE TRIGGER alert_notices_of_removed_shop BEFORE INSERT ON alert_notices
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- Who did what in a shop, from where and when.
CREATE TABLE audit (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  who TEXT NOT NULL,
  -- The network address of a visitor, or the user and the machine of a command.
  origin TEXT,
  action TEXT NOT NULL,
  subject TEXT,
  -- JSON objects.
  old_values TEXT,
  new_values TEXT
) STRICT;
CREATE INDEX audit_of_shop ON audit (shop_id, number);
CREATE INDEX audit_by_time ON audit (at);

CREATE TRIGGER audit_of_removed_shop BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;
