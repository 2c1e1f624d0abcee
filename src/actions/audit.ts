import { type Actor, type AuditEntry, type AuditedAction, auditEntry } from "../domain/audit.ts";
import type { Shop } from "../domain/shop.ts";
import type { AuditedStores, Store } from "../store/port/store.ts";

/** A shop, and the person who acts on it. */
export interface ActorInShop {
  shop: Shop;
  actor: Actor;
}

type Details = Partial<Pick<AuditEntry, "subject" | "before" | "after">>;

/** Returns the stores for one change. The change and its entry in the audit list share a transaction. */
export function audited(
  store: Pick<Store, "audited">,
  { shop, actor }: ActorInShop,
  now: number,
  action: AuditedAction,
  details?: Details,
): AuditedStores {
  return store.audited(shop.id, auditEntry(actor, now, action, details));
}

/** Writes an entry about an action that changes no stored data, such as showing a secret or a person's data. */
export async function noteInAudit(
  store: Pick<Store, "audit">,
  { shop, actor }: ActorInShop,
  now: number,
  action: AuditedAction,
  details?: Details,
): Promise<void> {
  await store.audit.add(shop.id, auditEntry(actor, now, action, details));
}

/** Describes what changed: "warehouse: host hooks.acme.io → hooks2.acme.io". */
export function changedText({ subject, before, after }: Pick<AuditEntry, "subject" | "before" | "after">): string {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const changes = [...names].flatMap((name) => {
    const [old, now] = [before?.[name], after?.[name]].map((value) => (value == null ? "" : String(value)));
    if (old === now) return [];
    return [`${name} ${[old, now].filter((text) => text !== "").join(" → ")}`];
  });
  return [subject, changes.join(", ")].filter(Boolean).join(": ");
}
