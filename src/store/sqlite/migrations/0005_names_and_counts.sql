-- Plain names, row counts kept by the commit, and the shop's number in every row of a table that grows.

ALTER TABLE facts RENAME TO meta;
ALTER TABLE inbox RENAME COLUMN asks TO needs_platform;
ALTER TABLE connections RENAME COLUMN news_since TO events_since;

-- How many rows the mirror has of each resource.
ALTER TABLE shops ADD COLUMN customer_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE shops ADD COLUMN subscription_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE shops ADD COLUMN order_count INTEGER NOT NULL DEFAULT 0;
UPDATE shops SET
  customer_count = (SELECT count(*) FROM customers WHERE customers.shop_id = shops.id),
  subscription_count = (SELECT count(*) FROM subscriptions WHERE subscriptions.shop_id = shops.id),
  order_count = (SELECT count(*) FROM orders WHERE orders.shop_id = shops.id);

CREATE TABLE attempts_with_shop (
  shop_id INTEGER NOT NULL,
  delivery INTEGER NOT NULL REFERENCES deliveries (number) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  duration INTEGER NOT NULL,
  status_code INTEGER,
  error TEXT,
  PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;
INSERT INTO attempts_with_shop
  SELECT shop_id, delivery, attempts.number, started_at, duration, status_code, attempts.error
  FROM attempts JOIN deliveries ON deliveries.number = attempts.delivery;
DROP TABLE attempts;
ALTER TABLE attempts_with_shop RENAME TO attempts;

-- Pruning and forgetting go shop by shop.
DROP INDEX deliveries_delivered;
CREATE INDEX deliveries_delivered ON deliveries (shop_id, ended_at) WHERE status = 'delivered';
DROP INDEX platform_webhooks_by_age;
