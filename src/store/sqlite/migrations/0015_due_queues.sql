-- The queue of a shop's webhooks and the queue of its workflow triggers: the sender claims from each one alone.
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (shop_id, kind, claimable_at) WHERE claimable_at IS NOT NULL;
