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
