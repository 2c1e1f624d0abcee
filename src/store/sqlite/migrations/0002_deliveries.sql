-- Webhooks: where to, signed with what, and every delivery with its attempts.

CREATE TABLE webhook_endpoints (
  shop_id INTEGER PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  url TEXT,
  -- JSON array of topics.
  topics TEXT NOT NULL
) STRICT;

-- The newest version signs what is queued from now on; a delivery keeps the version it was queued under.
CREATE TABLE webhook_secrets (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (shop_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
  -- In the order of queueing.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('webhook', 'trigger')),
  topic TEXT NOT NULL,
  test INTEGER NOT NULL CHECK (test IN (0, 1)),
  body TEXT NOT NULL,
  secret_version INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'retrying', 'delivered', 'dead')),
  attempts INTEGER NOT NULL DEFAULT 0,
  round INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER,
  -- When it may be claimed: the next attempt, or, while one is under way, the end of its lease.
  claimable_at INTEGER,
  lease TEXT,
  last_status_code INTEGER,
  error TEXT,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK ((status IN ('pending', 'retrying')) = (next_attempt_at IS NOT NULL)),
  CHECK ((next_attempt_at IS NULL) = (claimable_at IS NULL))
) STRICT;
CREATE INDEX deliveries_of_shop ON deliveries (shop_id, number);
CREATE INDEX deliveries_due ON deliveries (shop_id, claimable_at) WHERE claimable_at IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (shop_id, number) WHERE status = 'dead';
CREATE INDEX deliveries_delivered ON deliveries (ended_at) WHERE status = 'delivered';

CREATE TABLE attempts (
  delivery INTEGER NOT NULL REFERENCES deliveries (number) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  duration INTEGER NOT NULL,
  status_code INTEGER,
  error TEXT,
  PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;
