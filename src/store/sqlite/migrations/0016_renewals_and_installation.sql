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

-- How many attempts of a day had which outcome. Counted in the transactions that record the attempts.
CREATE TABLE delivery_counts (
  shop_id INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('webhook', 'trigger')),
  -- The start of the day in UTC.
  day INTEGER NOT NULL,
  -- `retried`: the attempt failed, and another one was planned.
  outcome TEXT NOT NULL CHECK (outcome IN ('delivered', 'retried', 'dead')),
  attempts INTEGER NOT NULL,
  -- When the last of these attempts began.
  last_at INTEGER NOT NULL,
  PRIMARY KEY (shop_id, kind, day, outcome)
) STRICT, WITHOUT ROWID;
-- The last 30 days of the attempts that are still stored. Of a dead delivery, only the last failure counts as `dead`.
INSERT INTO delivery_counts (shop_id, kind, day, outcome, attempts, last_at)
  SELECT attempts.shop_id, kind, started_at - started_at % 86400000 AS day,
    CASE WHEN attempts.error IS NULL THEN 'delivered'
      WHEN status = 'dead' AND attempts.number = deliveries.attempts THEN 'dead' ELSE 'retried' END AS outcome,
    count(*), max(started_at)
  FROM attempts JOIN deliveries ON deliveries.number = attempts.delivery
  WHERE started_at > (SELECT max(started_at) FROM attempts) - 30 * 86400000
  GROUP BY attempts.shop_id, kind, day, outcome;

-- What a delivery is about, from its body: the number of its contract, otherwise its customer. The text is pinned in
-- `SUBJECT` of quiet/delivery-search.ts. It needs no JSON function, because those refuse texts that are not JSON.
CREATE INDEX deliveries_of_subject ON deliveries (
  shop_id,
  kind,
  CASE
    WHEN topic = 'loyalty.reward_earned' THEN substr(body, instr(body, '"customer_id":"') + 15, 28)
    WHEN topic = 'streak-milestone-reached' THEN 'customer/' || substr(substr(body, instr(body, '"customer_id":') + 14, 21), 1, instr(substr(body, instr(body, '"customer_id":') + 14, 21), ',') - 1)
    WHEN instr(body, '"gid://shopify/SubscriptionContract/') > 0 THEN substr(substr(body, instr(body, '"gid://shopify/SubscriptionContract/') + 36, 21), 1, instr(substr(body, instr(body, '"gid://shopify/SubscriptionContract/') + 36, 21), '"') - 1)
  END,
  number
);
