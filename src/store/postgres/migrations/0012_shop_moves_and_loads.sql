-- Moves of shops to another database. While a shop arrives, or its writes are stopped, it is also marked as in removal,
-- so that nobody serves it.
CREATE TABLE shop_moves (
  -- Random. Both databases have it.
  move text COLLATE "C" PRIMARY KEY,
  -- The number of the shop in this database; NULL after it moved away.
  shop_id bigint UNIQUE,
  state text NOT NULL CHECK (state IN ('leaving', 'arriving', 'moved')),
  domain text NOT NULL,
  first_domain text NOT NULL,
  -- A hash of the epoch of the other database, of a leaving shop.
  target text,
  -- Random. The run of the command that stopped the writes; NULL while they go on.
  stop text,
  -- JSON: what is added to the numbers of each table of an arriving shop.
  offsets text
);

-- The databases that issued checkpoints of a moved shop.
CREATE TABLE checkpoint_origins (
  shop_id bigint NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  move text COLLATE "C" NOT NULL,
  epoch bytea NOT NULL,
  -- The number of the shop in that database.
  former_id bigint NOT NULL,
  PRIMARY KEY (shop_id, move)
);

-- True until the first load ended. So the search for shops to load, each second, reads only these. An older node leaves
-- it true when a load ends, which costs that search a row.
ALTER TABLE connections ADD COLUMN load_pending boolean NOT NULL DEFAULT true;
UPDATE connections SET load_pending = false
  WHERE shop_id IN (SELECT shop_id FROM syncs WHERE kind = 'full' AND last_ended_at IS NOT NULL);
CREATE INDEX connections_to_load ON connections (shop_id) WHERE load_pending;
