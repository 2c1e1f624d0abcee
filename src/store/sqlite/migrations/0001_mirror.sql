-- Shops, their keys and the mirror. Dates are epoch milliseconds; JSON is text.
--
-- A mirrored row is kept as the JSON that the API serves, rendered when it is written, in the order in which it is read
-- (clustered by shop, sort date, id). The columns beside it are what the mirror has to remember and does not serve.

CREATE TABLE shops (
  -- Never given twice, so that what is on its way for a removed shop cannot end in another.
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  domain TEXT NOT NULL UNIQUE,
  plan TEXT NOT NULL CHECK (plan IN ('pro', 'free', 'free+addon')),
  currency TEXT NOT NULL,
  intake_secret BLOB NOT NULL,
  -- Counts every write of a mirrored row of this shop; each row keeps the count of its own last write.
  change_count INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  label TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  fingerprint TEXT NOT NULL,
  legacy INTEGER NOT NULL CHECK (legacy IN (0, 1)),
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_of_shop ON api_keys (shop_id, created_at);

CREATE TABLE customers (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  json TEXT NOT NULL,
  profile_as_of INTEGER,
  consent_as_of INTEGER,
  change_number INTEGER NOT NULL,
  PRIMARY KEY (shop_id, created_at, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX customers_by_id ON customers (id);

CREATE TABLE subscriptions (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  started_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  json TEXT NOT NULL,
  revision TEXT,
  churn_type TEXT CHECK (churn_type IN ('voluntary', 'involuntary')),
  cycles_given INTEGER NOT NULL CHECK (cycles_given IN (0, 1)),
  renewals INTEGER NOT NULL,
  -- How the contract's last order stands: a cancellation after an unpaid one is involuntary.
  last_order_at INTEGER,
  last_order_status TEXT,
  change_number INTEGER NOT NULL,
  PRIMARY KEY (shop_id, started_at, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX subscriptions_by_id ON subscriptions (id);

CREATE TABLE orders (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  billed_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  json TEXT NOT NULL,
  attempt_count INTEGER NOT NULL,
  reason TEXT,
  next_retry_at INTEGER,
  retries_exhausted INTEGER CHECK (retries_exhausted IN (0, 1)),
  -- Whether any attempt was declined, and whether one succeeded.
  declined INTEGER NOT NULL CHECK (declined IN (0, 1)),
  charged INTEGER NOT NULL CHECK (charged IN (0, 1)),
  change_number INTEGER NOT NULL,
  PRIMARY KEY (shop_id, billed_at, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX orders_by_id ON orders (id);

-- Rewards and finished cancellation flows, once each by the sender's own id.
CREATE TABLE occurrences (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  type TEXT NOT NULL CHECK (type IN ('reward', 'cancel_flow')),
  id TEXT NOT NULL,
  json TEXT NOT NULL,
  change_number INTEGER NOT NULL,
  PRIMARY KEY (shop_id, type, id)
) STRICT, WITHOUT ROWID;

-- The platform's webhooks that were taken, so that one sent again is known.
CREATE TABLE platform_webhooks (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (shop_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX platform_webhooks_by_age ON platform_webhooks (received_at);

-- Facts about the database itself, such as the fingerprint of the key that seals its secrets.
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
