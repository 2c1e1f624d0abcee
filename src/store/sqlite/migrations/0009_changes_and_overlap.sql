-- What lists of changes, filters and checkpoints read, and secrets that sign beside a newer one. Triggers keep the
-- tables of the first ones, so they are right whatever writes a row.

-- Each mirrored row by the number of its last change.
CREATE TABLE changes (
  shop_id INTEGER NOT NULL,
  resource TEXT NOT NULL,
  number INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (shop_id, resource, number, id)
) STRICT, WITHOUT ROWID;
INSERT INTO changes SELECT shop_id, 'customers', change_number, id FROM customers ORDER BY shop_id, change_number;
INSERT INTO changes SELECT shop_id, 'subscriptions', change_number, id FROM subscriptions
  ORDER BY shop_id, change_number;
INSERT INTO changes SELECT shop_id, 'orders', change_number, id FROM orders ORDER BY shop_id, change_number;

CREATE TRIGGER customer_added AFTER INSERT ON customers BEGIN
  INSERT INTO changes VALUES (NEW.shop_id, 'customers', NEW.change_number, NEW.id);
END;
CREATE TRIGGER customer_changed AFTER UPDATE OF change_number ON customers BEGIN
  DELETE FROM changes WHERE shop_id = OLD.shop_id AND resource = 'customers' AND number = OLD.change_number
    AND id = OLD.id;
  INSERT INTO changes VALUES (NEW.shop_id, 'customers', NEW.change_number, NEW.id);
END;
CREATE TRIGGER customer_removed AFTER DELETE ON customers BEGIN
  DELETE FROM changes WHERE shop_id = OLD.shop_id AND resource = 'customers' AND number = OLD.change_number
    AND id = OLD.id;
END;
CREATE TRIGGER subscription_changed AFTER UPDATE OF change_number ON subscriptions BEGIN
  DELETE FROM changes WHERE shop_id = OLD.shop_id AND resource = 'subscriptions' AND number = OLD.change_number
    AND id = OLD.id;
  INSERT INTO changes VALUES (NEW.shop_id, 'subscriptions', NEW.change_number, NEW.id);
END;
CREATE TRIGGER order_changed AFTER UPDATE OF change_number ON orders BEGIN
  DELETE FROM changes WHERE shop_id = OLD.shop_id AND resource = 'orders' AND number = OLD.change_number
    AND id = OLD.id;
  INSERT INTO changes VALUES (NEW.shop_id, 'orders', NEW.change_number, NEW.id);
END;

-- The contracts and orders of each customer, and the orders of each contract, in the order of the lists. An index on
-- the JSON would be written with every change of a row.
CREATE TABLE customer_subscriptions (
  shop_id INTEGER NOT NULL,
  customer_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (shop_id, customer_id, started_at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO customer_subscriptions
  SELECT shop_id, json ->> '$.customerId', started_at, id FROM subscriptions ORDER BY 1, 2, 3, 4;

CREATE TABLE customer_orders (
  shop_id INTEGER NOT NULL,
  customer_id TEXT NOT NULL,
  billed_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (shop_id, customer_id, billed_at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO customer_orders SELECT shop_id, json ->> '$.customerId', billed_at, id FROM orders ORDER BY 1, 2, 3, 4;

CREATE TABLE contract_orders (
  shop_id INTEGER NOT NULL,
  contract_id TEXT NOT NULL,
  billed_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (shop_id, contract_id, billed_at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO contract_orders SELECT shop_id, json ->> '$.contractId', billed_at, id FROM orders ORDER BY 1, 2, 3, 4;

CREATE TRIGGER subscription_added AFTER INSERT ON subscriptions BEGIN
  INSERT INTO changes VALUES (NEW.shop_id, 'subscriptions', NEW.change_number, NEW.id);
  INSERT INTO customer_subscriptions VALUES (NEW.shop_id, NEW.json ->> '$.customerId', NEW.started_at, NEW.id);
END;
CREATE TRIGGER subscription_given AFTER UPDATE OF json ON subscriptions
WHEN OLD.json ->> '$.customerId' IS NOT NEW.json ->> '$.customerId' BEGIN
  DELETE FROM customer_subscriptions WHERE shop_id = OLD.shop_id AND customer_id = OLD.json ->> '$.customerId'
    AND started_at = OLD.started_at AND id = OLD.id;
  INSERT INTO customer_subscriptions VALUES (NEW.shop_id, NEW.json ->> '$.customerId', NEW.started_at, NEW.id);
END;
CREATE TRIGGER subscription_removed AFTER DELETE ON subscriptions BEGIN
  DELETE FROM changes WHERE shop_id = OLD.shop_id AND resource = 'subscriptions' AND number = OLD.change_number
    AND id = OLD.id;
  DELETE FROM customer_subscriptions WHERE shop_id = OLD.shop_id AND customer_id = OLD.json ->> '$.customerId'
    AND started_at = OLD.started_at AND id = OLD.id;
END;
CREATE TRIGGER order_added AFTER INSERT ON orders BEGIN
  INSERT INTO changes VALUES (NEW.shop_id, 'orders', NEW.change_number, NEW.id);
  INSERT INTO customer_orders VALUES (NEW.shop_id, NEW.json ->> '$.customerId', NEW.billed_at, NEW.id);
  INSERT INTO contract_orders VALUES (NEW.shop_id, NEW.json ->> '$.contractId', NEW.billed_at, NEW.id);
END;
CREATE TRIGGER order_given AFTER UPDATE OF json ON orders
WHEN OLD.json ->> '$.customerId' IS NOT NEW.json ->> '$.customerId' BEGIN
  DELETE FROM customer_orders WHERE shop_id = OLD.shop_id AND customer_id = OLD.json ->> '$.customerId'
    AND billed_at = OLD.billed_at AND id = OLD.id;
  INSERT INTO customer_orders VALUES (NEW.shop_id, NEW.json ->> '$.customerId', NEW.billed_at, NEW.id);
END;
CREATE TRIGGER order_removed AFTER DELETE ON orders BEGIN
  DELETE FROM changes WHERE shop_id = OLD.shop_id AND resource = 'orders' AND number = OLD.change_number
    AND id = OLD.id;
  DELETE FROM customer_orders WHERE shop_id = OLD.shop_id AND customer_id = OLD.json ->> '$.customerId'
    AND billed_at = OLD.billed_at AND id = OLD.id;
  DELETE FROM contract_orders WHERE shop_id = OLD.shop_id AND contract_id = OLD.json ->> '$.contractId'
    AND billed_at = OLD.billed_at AND id = OLD.id;
END;

-- For each half minute in which a shop's mirror changed: how many changes there were before.
CREATE TABLE change_spans (
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  -- Half minutes since 1970.
  span INTEGER NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (shop_id, span)
) STRICT, WITHOUT ROWID;
-- The last one in change_spans. What changed before this version belongs to the first one that is noted.
ALTER TABLE shops ADD COLUMN change_span INTEGER NOT NULL DEFAULT 0;

-- How long the version before a secret signs beside it: epoch milliseconds, null where it does not.
ALTER TABLE webhook_secrets ADD COLUMN overlap_ends_at INTEGER;

-- Where an attempt went, and the beginning of the answer: null in attempts of earlier versions.
ALTER TABLE attempts ADD COLUMN url TEXT;
ALTER TABLE attempts ADD COLUMN answer TEXT;
