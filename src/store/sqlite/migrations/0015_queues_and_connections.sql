-- The queue of a shop's webhooks and the queue of its workflow triggers: the sender claims from each one alone.
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (shop_id, kind, claimable_at) WHERE claimable_at IS NOT NULL;

-- Shops that uninstalled the app, until they are connected again. The platform cancels their contracts two days later.
CREATE TABLE uninstallations (
  shop_id INTEGER PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  uninstalled_at INTEGER NOT NULL,
  -- Of the connection before: see `connections.events_since`.
  events_since INTEGER NOT NULL,
  -- Whether the mirror has the contracts as cancelled.
  contracts_ended INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TRIGGER uninstallations_of_removed_shop BEFORE INSERT ON uninstallations
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- A fourth kind of connection. SQLite cannot change a CHECK, so the table is made again.
CREATE TABLE connections_by_kind (
  shop_id INTEGER PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('client_credentials', 'token', 'refresh', 'app_key')),
  -- Access and refresh token as one, so that a rotated pair is stored in one write. Also the app's own private key.
  sealed BLOB NOT NULL,
  expires_at INTEGER,
  scopes TEXT NOT NULL,
  connected_at INTEGER NOT NULL,
  -- When the shop was connected first. What happened before queues no events.
  events_since INTEGER NOT NULL,
  -- Which process renews the token, and until when nobody else does.
  renewing TEXT,
  renewing_until INTEGER,
  -- Why the platform refuses the connection; null while it accepts it.
  trouble TEXT,
  -- When `trouble` began.
  trouble_since INTEGER
) STRICT;
INSERT INTO connections_by_kind
  (shop_id, kind, sealed, expires_at, scopes, connected_at, events_since, renewing, renewing_until, trouble)
  SELECT shop_id, kind, sealed, expires_at, scopes, connected_at, events_since, renewing, renewing_until, trouble
  FROM connections;
DROP TABLE connections;
ALTER TABLE connections_by_kind RENAME TO connections;

CREATE TRIGGER connections_of_removed_shop BEFORE INSERT ON connections
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- What the operator has to know about a connection that works: see `WarningKind`.
CREATE TABLE platform_warnings (
  shop_id INTEGER NOT NULL REFERENCES connections (shop_id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  since INTEGER NOT NULL,
  logged_at INTEGER NOT NULL,
  PRIMARY KEY (shop_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER platform_warnings_of_removed_shop BEFORE INSERT ON platform_warnings
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- The domain with which a renamed shop was added: internal ids are derived from it. null for a shop that was not renamed.
ALTER TABLE shops ADD COLUMN first_domain TEXT;
CREATE UNIQUE INDEX shops_by_first_domain ON shops (first_domain) WHERE first_domain IS NOT NULL;

-- When a contract changed last, as its last reading showed it. NULL if an earlier version noted the reading.
ALTER TABLE contract_reads ADD COLUMN updated_at INTEGER;
