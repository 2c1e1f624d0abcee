-- Orders of a load that come before their contracts. They are there only while the load runs.

CREATE TABLE order_stages (
  -- Never used again, so that rows of a stage that is being removed cannot be seen in another.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  -- Whether all of its rows are there. It is not read before.
  complete INTEGER NOT NULL CHECK (complete IN (0, 1))
) STRICT;
CREATE INDEX order_stages_of_shop ON order_stages (shop_id, complete, number);

CREATE TRIGGER order_stages_of_removed_shop BEFORE INSERT ON order_stages
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- Rows are added only while their stage is there. They are removed in steps after it.
CREATE TABLE staged_orders (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  stage INTEGER NOT NULL,
  gid TEXT NOT NULL,
  -- Without the lines.
  json TEXT NOT NULL,
  PRIMARY KEY (shop_id, stage, gid)
) STRICT, WITHOUT ROWID;

CREATE TABLE staged_order_lines (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  stage INTEGER NOT NULL,
  order_gid TEXT NOT NULL,
  gid TEXT NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (shop_id, stage, order_gid, gid)
) STRICT, WITHOUT ROWID;
