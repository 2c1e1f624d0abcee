-- Finds due deliveries and due items of the inbox by their time, for all shops together.
CREATE INDEX deliveries_planned ON deliveries (claimable_at, shop_id, kind) WHERE claimable_at IS NOT NULL;
CREATE INDEX inbox_planned ON inbox (next_attempt_at, shop_id, needs_platform) WHERE next_attempt_at IS NOT NULL;
-- Nodes that need it are three schemas older: `deliveries_due_by_queue` replaced it.
DROP INDEX deliveries_due;
