-- What lists of changes, filters and checkpoints read, and secrets that sign beside a newer one.

-- In the order in which commits lock: a node that works meanwhile waits for the whole upgrade and holds nothing.
LOCK TABLE shop_changes, shops, customers, subscriptions, orders, webhook_secrets, attempts IN ACCESS EXCLUSIVE MODE;

-- Each mirrored row by the number of its last change. Triggers keep it, so it is right whatever writes a row, also a
-- node with an older program. An index on the change number would be written, with all others, at each change.
CREATE TABLE changes (
  shop_id bigint NOT NULL,
  resource text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  PRIMARY KEY (shop_id, resource, number, id)
);

CREATE FUNCTION note_added_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO changes (shop_id, resource, number, id)
    SELECT shop_id, TG_ARGV[0], change_number, id FROM added;
  RETURN NULL;
END $$;

-- The settings keep the planner from reading the whole table for a few rows, which it would do while the table is new.
CREATE FUNCTION note_changed_rows() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  DELETE FROM changes USING former
    WHERE changes.shop_id = former.shop_id AND changes.resource = TG_ARGV[0]
      AND changes.number = former.change_number AND changes.id = former.id;
  INSERT INTO changes (shop_id, resource, number, id)
    SELECT shop_id, TG_ARGV[0], change_number, id FROM changed;
  RETURN NULL;
END $$;

CREATE FUNCTION note_removed_rows() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  DELETE FROM changes USING removed
    WHERE changes.shop_id = removed.shop_id AND changes.resource = TG_ARGV[0]
      AND changes.number = removed.change_number AND changes.id = removed.id;
  RETURN NULL;
END $$;

CREATE TRIGGER customers_added AFTER INSERT ON customers
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_added_rows('customers');
CREATE TRIGGER customers_changed AFTER UPDATE ON customers
  REFERENCING OLD TABLE AS former NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('customers');
CREATE TRIGGER customers_removed AFTER DELETE ON customers
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION note_removed_rows('customers');

CREATE TRIGGER subscriptions_added AFTER INSERT ON subscriptions
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_added_rows('subscriptions');
CREATE TRIGGER subscriptions_changed AFTER UPDATE ON subscriptions
  REFERENCING OLD TABLE AS former NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('subscriptions');
CREATE TRIGGER subscriptions_removed AFTER DELETE ON subscriptions
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION note_removed_rows('subscriptions');

CREATE TRIGGER orders_added AFTER INSERT ON orders
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_added_rows('orders');
CREATE TRIGGER orders_changed AFTER UPDATE ON orders
  REFERENCING OLD TABLE AS former NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('orders');
CREATE TRIGGER orders_removed AFTER DELETE ON orders
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION note_removed_rows('orders');

-- Whose the contracts and orders are, from the JSON. These columns seldom change, so their indexes are seldom written.
ALTER TABLE subscriptions ADD COLUMN customer_id text COLLATE "C"
  GENERATED ALWAYS AS (substring(json FROM '"customerId":"(cus_[a-z2-7]{24})"')) STORED;
ALTER TABLE orders
  ADD COLUMN customer_id text COLLATE "C"
    GENERATED ALWAYS AS (substring(json FROM '"customerId":"(cus_[a-z2-7]{24})"')) STORED,
  ADD COLUMN contract_id text COLLATE "C"
    GENERATED ALWAYS AS (substring(json FROM '"contractId":"(sub_[a-z2-7]{24})"')) STORED;
CREATE INDEX subscriptions_of_customer ON subscriptions (shop_id, customer_id, started_at, id);
CREATE INDEX orders_of_customer ON orders (shop_id, customer_id, billed_at, id);
CREATE INDEX orders_of_contract ON orders (shop_id, contract_id, billed_at, id);

-- After the triggers, which wait until nobody writes.
INSERT INTO changes SELECT shop_id, 'customers', change_number, id FROM customers;
INSERT INTO changes SELECT shop_id, 'subscriptions', change_number, id FROM subscriptions;
INSERT INTO changes SELECT shop_id, 'orders', change_number, id FROM orders;

-- For each half minute in which a shop's mirror changed: how many changes there were before.
CREATE TABLE change_spans (
  shop_id bigint NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  -- Half minutes since 1970.
  span bigint NOT NULL,
  number bigint NOT NULL,
  PRIMARY KEY (shop_id, span)
);
ALTER TABLE shop_changes
  -- The last one in change_spans. What changed before this version belongs to the first one that is noted.
  ADD COLUMN change_span bigint NOT NULL DEFAULT 0,
  -- The count after the last commit of a program that notes spans. A node with an older program does not.
  ADD COLUMN noted_count bigint NOT NULL DEFAULT 0;

-- How long the version before a secret signs beside it: epoch milliseconds, null where it does not.
ALTER TABLE webhook_secrets ADD COLUMN overlap_ends_at bigint;

-- Where an attempt went, and the beginning of the answer: null in attempts of earlier versions.
ALTER TABLE attempts
  ADD COLUMN url text,
  ADD COLUMN answer text;
