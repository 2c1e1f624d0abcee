-- All that waits about one subject is taken together, whenever each of it is due.
CREATE INDEX inbox_of_subject ON inbox (shop_id, subject, next_attempt_at, number) WHERE next_attempt_at IS NOT NULL;

-- When the last whole reading of each contract began: an older platform webhook has nothing to tell.
CREATE TABLE contract_reads (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  -- Its gid.
  contract TEXT NOT NULL,
  began_at INTEGER NOT NULL,
  -- JSON object: the orders that were read last, by their gids, each with the time when its reading began.
  orders TEXT NOT NULL,
  PRIMARY KEY (shop_id, contract)
) STRICT, WITHOUT ROWID;

-- The contracts of an order that a platform webhook names. One order can belong to several contracts.
CREATE INDEX orders_by_gid ON orders (shop_id, json_extract(json, '$.shopifyId'))
WHERE json_extract(json, '$.shopifyId') IS NOT NULL;

-- Customers' requests for the data that is stored about them.
CREATE TABLE data_requests (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  -- The platform's id of the request, or else what identifies it.
  id TEXT NOT NULL,
  -- The customer's gid.
  customer TEXT NOT NULL,
  requested_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  -- Null while it is open.
  answered_at INTEGER,
  PRIMARY KEY (shop_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX data_requests_open ON data_requests (shop_id, due_at) WHERE answered_at IS NULL;

-- As for the other tables that are emptied when the removal of a shop begins.
CREATE TRIGGER data_requests_of_removed_shop BEFORE INSERT ON data_requests
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

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
