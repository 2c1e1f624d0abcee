import type { Database } from "bun:sqlite";
import type { Row } from "../../domain/rows.ts";

/**
 * Makes a function that lists a new row for scans of changes and filters. It writes to `changes`. It also writes to the
 * tables of each customer's contracts and orders, and of each contract's orders. Triggers update these tables when the
 * row changes or is removed.
 */
export function rowLister(db: Database): (shopId: number, row: Row, changeNumber: number) => void {
  const insertInto = (table: string) =>
    db.prepare<unknown, (string | number)[]>(`INSERT INTO ${table} VALUES (?, ?, ?, ?)`);
  const changes = insertInto("changes");
  const ofCustomer = { subscription: insertInto("customer_subscriptions"), order: insertInto("customer_orders") };
  const ofContract = insertInto("contract_orders");

  return (shopId, row, changeNumber) => {
    switch (row.kind) {
      case "customer":
        changes.run(shopId, "customers", changeNumber, row.resource.id);
        return;
      case "subscription": {
        const { id, customerId, startedAt } = row.resource;
        changes.run(shopId, "subscriptions", changeNumber, id);
        ofCustomer.subscription.run(shopId, customerId, Date.parse(startedAt), id);
        return;
      }
      case "order": {
        const { id, customerId, contractId, billedAt } = row.resource;
        changes.run(shopId, "orders", changeNumber, id);
        ofCustomer.order.run(shopId, customerId, Date.parse(billedAt), id);
        ofContract.run(shopId, contractId, Date.parse(billedAt), id);
      }
    }
  };
}

/** Triggers that list rows written without `rowLister`, until the connection is closed. */
export const LISTING_TRIGGERS = `
  CREATE TEMP TRIGGER customer_added AFTER INSERT ON customers BEGIN
    INSERT INTO changes VALUES (NEW.shop_id, 'customers', NEW.change_number, NEW.id);
  END;
  CREATE TEMP TRIGGER subscription_added AFTER INSERT ON subscriptions BEGIN
    INSERT INTO changes VALUES (NEW.shop_id, 'subscriptions', NEW.change_number, NEW.id);
    INSERT INTO customer_subscriptions VALUES (NEW.shop_id, NEW.json ->> '$.customerId', NEW.started_at, NEW.id);
  END;
  CREATE TEMP TRIGGER order_added AFTER INSERT ON orders BEGIN
    INSERT INTO changes VALUES (NEW.shop_id, 'orders', NEW.change_number, NEW.id);
    INSERT INTO customer_orders VALUES (NEW.shop_id, NEW.json ->> '$.customerId', NEW.billed_at, NEW.id);
    INSERT INTO contract_orders VALUES (NEW.shop_id, NEW.json ->> '$.contractId', NEW.billed_at, NEW.id);
  END;`;
