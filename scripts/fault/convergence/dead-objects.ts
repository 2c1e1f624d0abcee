import type { ConnectedShop } from "../../../test/support/connected.ts";

/** An object that never answers: one field stays broken, so sds cannot read the object. */
export interface DeadObject {
  gid: string;
  /** The broken field. */
  field: string;
  /** Its inbox item has one of these subjects. */
  subjects: string[];
  /** Objects that depend on it. They may differ from the mirror. */
  unchecked: string[];
}

/** Changes an object, so that the next reconciliation reads it. */
export function touch(remote: ConnectedShop["remote"], gid: string): void {
  if (gid.includes("SubscriptionContract")) remote.updateContract(gid, {});
  else if (gid.includes("Customer")) remote.updateCustomer(gid, {});
  else remote.updateOrder(gid, {});
}

/** Finds what is wrong in the inbox at the end of a life. It must have only items of the dead objects. */
export async function wrongItems(all: ConnectedShop, dead: readonly DeadObject[]): Promise<string[]> {
  const findings: string[] = [];
  const inbox = await all.inbox();
  const mirrored = new Set((await all.shop.all("subscriptions")).map(({ shopifyId }) => shopifyId));
  for (const { gid, field, subjects } of dead) {
    // While the contract is not mirrored, sds does not know that the order belongs to it. So the contract and its
    // order each have an inbox item.
    const isApart = subjects.some((subject) => subject.includes("Contract") && !mirrored.has(subject));
    const own = inbox.filter(({ subject }) => subjects.includes(subject));
    const isNamed = own.every(({ error }) => error?.includes("Internal error") === true);
    if (own.length !== (isApart ? subjects.length : 1) || !isNamed)
      findings.push(`${gid} never answers ${field} and has these items: ${JSON.stringify(own)}`);
  }
  const known = new Set(dead.flatMap(({ subjects }) => subjects));
  for (const item of inbox.filter(({ subject }) => !known.has(subject)))
    findings.push(`an item stays in the inbox: ${JSON.stringify(item)}`);
  return findings;
}
