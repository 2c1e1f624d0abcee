-- Removing a shop goes in steps, which may be interrupted. The mark says that the shop is being removed, and is there
-- until its last row is gone.

-- Since when the shop is being removed; null while it is not.
ALTER TABLE shops ADD COLUMN removal_started_at INTEGER;
CREATE INDEX shops_being_removed ON shops (removal_started_at) WHERE removal_started_at IS NOT NULL;

-- A shop that is being removed gets no new row in these tables, as if its own row were gone already: whoever found the
-- shop before the mark is refused by these triggers as by the foreign key. The tables that grow have no trigger, because
-- it would cost at each row: their writers look at the mark once in each transaction.
CREATE TRIGGER api_keys_of_removed_shop BEFORE INSERT ON api_keys
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

CREATE TRIGGER webhook_endpoints_of_removed_shop BEFORE INSERT ON webhook_endpoints
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

CREATE TRIGGER webhook_secrets_of_removed_shop BEFORE INSERT ON webhook_secrets
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

CREATE TRIGGER connections_of_removed_shop BEFORE INSERT ON connections
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

CREATE TRIGGER syncs_of_removed_shop BEFORE INSERT ON syncs
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

CREATE TRIGGER admin_links_of_removed_shop BEFORE INSERT ON admin_links
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

CREATE TRIGGER admin_sessions_of_removed_shop BEFORE INSERT ON admin_sessions
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- Large bodies of the intake: stored whole first, and then applied part by part. So an interrupted one is applied to
-- its end after a restart.

CREATE TABLE intake_bodies (
  -- In the order in which they are applied.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  -- Whether all of its parts are stored. Nothing of it is applied before.
  complete INTEGER NOT NULL CHECK (complete IN (0, 1))
) STRICT;
CREATE INDEX intake_bodies_of_shop ON intake_bodies (shop_id);

-- What is still to be applied of each body.
CREATE TABLE intake_parts (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  body INTEGER NOT NULL REFERENCES intake_bodies (number) ON DELETE CASCADE,
  -- JSON array of records.
  records TEXT NOT NULL
) STRICT;
CREATE INDEX intake_parts_of_body ON intake_parts (shop_id, body, number);
CREATE INDEX intake_parts_by_body ON intake_parts (body);

-- A part is large, so the look at the mark does not count.
CREATE TRIGGER intake_bodies_of_removed_shop BEFORE INSERT ON intake_bodies
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

CREATE TRIGGER intake_parts_of_removed_shop BEFORE INSERT ON intake_parts
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;

-- What is known of an endpoint's pace, so that a restart does not forget who hangs. Null: it was never tried.

ALTER TABLE webhook_endpoints ADD COLUMN pace TEXT CHECK (pace IN ('quick', 'slow'));
ALTER TABLE webhook_endpoints ADD COLUMN timed_out_at INTEGER;
