import type { PersonExport } from "../store/port/people.ts";
import type { Store } from "../store/port/store.ts";
import { type ActorInShop, audited, noteInAudit } from "./audit.ts";

/** Returns everything that is stored about a person. @returns undefined for an unknown person */
export async function exportPerson(
  store: Pick<Store, "people" | "audit">,
  by: ActorInShop,
  gid: string,
  now: number,
): Promise<PersonExport | undefined> {
  const found = await store.people.export(by.shop, gid);
  if (found !== undefined) await noteInAudit(store, by, now, "person.exported", { subject: gid });
  return found;
}

/** Notes that a person's requests for their data are answered. @returns the number of requests that were open */
export function answerDataRequests(
  store: Pick<Store, "audited">,
  by: ActorInShop,
  gid: string,
  now: number,
): Promise<number> {
  const { dataRequests } = audited(store, by, now, "person.answered", { subject: gid });
  return dataRequests.answer(by.shop.id, gid, now);
}
