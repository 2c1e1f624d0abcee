import type { RedactionRecord } from "../../src/domain/records/platform-records.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { customer, gid } from "../support/records.ts";
import { TABLE_NAMES } from "../support/tables.ts";
import type { TestStore } from "./engines.ts";
import { receipt, receiveAll } from "./fixtures.ts";

export const ADA = "ada@example.com";
export const redaction: RedactionRecord = { type: "redaction", shopifyId: gid.customer(1), asOf: START };
export const ada = customer(1, { email: ADA, firstName: "Ada", lastName: "Lovelace" });
export const adaWebhook = `{"id":5001,"customer":{"id":1,"email":"${ADA}","first_name":"Ada"},"total":"25.00"}`;
export const grace = `{"customer":{"id":2,"email":"grace@example.com"},"count":11}`;

/** Lists the tables that still contain a text. */
export async function tablesWith({ rows }: TestStore, text: string): Promise<string[]> {
  const texts = await Promise.all(
    TABLE_NAMES.map(async (table) => [table, JSON.stringify(await rows(table))] as const),
  );
  return texts.filter(([, json]) => json.includes(text)).map(([table]) => table);
}

/**
 * Fills the inbox with webhooks about other people. A search reads the inbox last, so these webhooks make the search
 * take several turns more.
 */
export async function receiveMany(store: Store, shop: MirroredShop): Promise<void> {
  await receiveAll(
    store,
    Array.from({ length: 60 }, () => receipt(shop, null, { body: grace })),
  );
}
