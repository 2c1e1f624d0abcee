-- Moves of shops to another database. While a shop arrives, or its writes are stopped, it is also marked as in removal,
-- so that nobody serves it.
CREATE TABLE shop_moves (
  -- Random. Both databases have it.
  move TEXT PRIMARY KEY,
  -- The number of the shop in this database; NULL after it moved away.
  shop_id INTEGER UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('leaving', 'arriving', 'moved')),
  domain TEXT NOT NULL,
  first_domain TEXT NOT NULL,
  -- A hash of the epoch of the other database, of a leaving shop.
  target TEXT,
  -- Random. The run of the command that stopped the writes; NULL while they go on.
  stop TEXT,
  -- JSON: what is added to the numbers of each table of an arriving shop.
  offsets TEXT
) STRICT, WITHOUT ROWID;

-- The databases that issued checkpoints of a moved shop.
CREATE TABLE checkpoint_origins (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  move TEXT NOT NULL,
  epoch BLOB NOT NULL,
  -- The number of the shop in that database.
  former_id INTEGER NOT NULL,
  PRIMARY KEY (shop_id, move)
) STRICT, WITHOUT ROWID;

-- True until the first load ended. So the search for shops to load, each second, reads only these.
ALTER TABLE connections ADD COLUMN load_pending INTEGER NOT NULL DEFAULT 1;
UPDATE connections SET load_pending = 0
  WHERE shop_id IN (SELECT shop_id FROM syncs WHERE kind = 'full' AND last_ended_at IS NOT NULL);
CREATE INDEX connections_to_load ON connections (shop_id) WHERE load_pending;
