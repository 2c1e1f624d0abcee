-- The queue of a shop's webhooks and the queue of its workflow triggers: the sender claims from each one alone.
-- `deliveries_due` stays for older nodes.
CREATE INDEX deliveries_due_by_queue ON deliveries (shop_id, kind, claimable_at, number)
  WHERE claimable_at IS NOT NULL;
