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
