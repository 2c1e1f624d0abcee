-- Events for which no delivery was queued, and why: the last one of each day, subject, topic and cycle.
CREATE TABLE unsent_events (
  shop_id INTEGER NOT NULL,
  -- Days since 1970 in UTC. It comes first in the key, so that old events are removed as a range.
  day INTEGER NOT NULL,
  -- As in `deliveries_of_subject`.
  subject TEXT NOT NULL,
  topic TEXT NOT NULL,
  -- Which renewal of the contract; 0 for a checkout, -1 for events that name no order.
  cycle INTEGER NOT NULL,
  at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (shop_id, day, subject, topic, cycle)
) STRICT, WITHOUT ROWID;

-- As in PostgreSQL, from where `sds copy` brings branches. This engine begins none.
ALTER TABLE shops ADD COLUMN branch TEXT NOT NULL DEFAULT '';
CREATE TABLE former_branches (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  branch TEXT NOT NULL,
  change_count INTEGER NOT NULL,
  PRIMARY KEY (shop_id, branch)
) STRICT, WITHOUT ROWID;

-- Finds due deliveries by their time, for all shops together.
CREATE INDEX deliveries_planned ON deliveries (claimable_at, shop_id, kind) WHERE claimable_at IS NOT NULL;
