-- The platform: how a shop is connected, what its webhooks brought and waits, and how far the mirror was loaded.

-- Whether the operator chose the plan; else the platform's app subscription decides.
ALTER TABLE shops ADD COLUMN plan_fixed INTEGER NOT NULL DEFAULT 0 CHECK (plan_fixed IN (0, 1));
-- JSON array: days to wait after each declined attempt.
ALTER TABLE shops ADD COLUMN retry_days TEXT NOT NULL DEFAULT '[1,3,5]';
-- A discount of this title is store credit.
ALTER TABLE shops ADD COLUMN credit_title TEXT NOT NULL DEFAULT 'Loyalty credit';
-- JSON array of the handles of the workflow triggers that are on.
ALTER TABLE shops ADD COLUMN triggers TEXT NOT NULL DEFAULT '[]';

-- Attempts that the platform told of and that ended: what is new in its next telling is beyond them.
ALTER TABLE orders ADD COLUMN platform_attempts INTEGER NOT NULL DEFAULT 0;

CREATE TABLE connections (
  shop_id INTEGER PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('client_credentials', 'token', 'refresh')),
  -- Access and refresh token as one, so that a rotated pair is stored in one write.
  sealed BLOB NOT NULL,
  expires_at INTEGER,
  scopes TEXT NOT NULL,
  connected_at INTEGER NOT NULL,
  -- What happened before is no news: the shop was connected first then.
  news_since INTEGER NOT NULL,
  -- Which process renews the token, and until when nobody else does.
  renewing TEXT,
  renewing_until INTEGER,
  -- Why the platform takes the token no more; null while it does.
  trouble TEXT
) STRICT;

-- The platform's webhooks from their receipt to their end. What came to a good end is gone from here.
CREATE TABLE inbox (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  topic TEXT NOT NULL,
  -- What it is about: those about the same are processed one after another.
  subject TEXT NOT NULL,
  -- Whether the platform has to be asked to process it.
  asks INTEGER NOT NULL CHECK (asks IN (0, 1)),
  body TEXT NOT NULL,
  triggered_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('waiting', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER,
  error TEXT,
  CHECK ((status = 'waiting') = (next_attempt_at IS NOT NULL))
) STRICT;
CREATE INDEX inbox_due ON inbox (shop_id, asks, next_attempt_at, number) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX inbox_of_shop ON inbox (shop_id, number);
CREATE INDEX inbox_failed ON inbox (shop_id, number) WHERE status = 'failed';

-- Loading a shop whole, and repairing what changed.
CREATE TABLE syncs (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('full', 'changes')),
  -- JSON: how far the run is that has begun and not ended.
  run TEXT,
  -- The last run that came to its end.
  last_started_at INTEGER,
  last_ended_at INTEGER,
  last_changed INTEGER,
  PRIMARY KEY (shop_id, kind)
) STRICT, WITHOUT ROWID;
