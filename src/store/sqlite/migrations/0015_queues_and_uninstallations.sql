-- The queue of a shop's webhooks and the queue of its workflow triggers: the sender claims from each one alone.
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (shop_id, kind, claimable_at) WHERE claimable_at IS NOT NULL;

-- Shops that uninstalled the app, until they are connected again. The platform cancels their contracts two days later.
CREATE TABLE uninstallations (
  shop_id INTEGER PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  uninstalled_at INTEGER NOT NULL,
  -- Of the connection before: see `connections.events_since`.
  events_since INTEGER NOT NULL,
  -- Whether the mirror has the contracts as cancelled.
  contracts_ended INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TRIGGER uninstallations_of_removed_shop BEFORE INSERT ON uninstallations
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;
