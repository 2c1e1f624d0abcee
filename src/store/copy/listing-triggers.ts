/**
 * Temporary SQLite triggers for a copy or a move. They add each new row to the tables that list rows, as `rowLister`
 * (sqlite/rows.ts) does.
 */
export const LISTING_TRIGGERS: Readonly<Record<string, string>> = {
  customer_added: `CREATE TEMP TRIGGER customer_added AFTER INSERT ON customers BEGIN
    INSERT INTO changes VALUES (NEW.shop_id, 'customers', NEW.change_number, NEW.id);
  END`,
  subscription_added: `CREATE TEMP TRIGGER subscription_added AFTER INSERT ON subscriptions BEGIN
    INSERT INTO changes VALUES (NEW.shop_id, 'subscriptions', NEW.change_number, NEW.id);
    INSERT INTO customer_subscriptions VALUES (NEW.shop_id, NEW.json ->> '$.customerId', NEW.started_at, NEW.id);
  END`,
  order_added: `CREATE TEMP TRIGGER order_added AFTER INSERT ON orders BEGIN
    INSERT INTO changes VALUES (NEW.shop_id, 'orders', NEW.change_number, NEW.id);
    INSERT INTO customer_orders VALUES (NEW.shop_id, NEW.json ->> '$.customerId', NEW.billed_at, NEW.id);
    INSERT INTO contract_orders VALUES (NEW.shop_id, NEW.json ->> '$.contractId', NEW.billed_at, NEW.id);
  END`,
};
