import type { KeyOwner } from "../store/port/keys.ts";
import type { Snapshot } from "../store/port/pages.ts";

/**
 * Makes entity tags (RFC 9110, section 8.8.3). The answer to a path and query stays the same until rows of its resource
 * change. An archived or restored custom field changes the answer too. The tags are weak, because an answer can be
 * compressed in several ways.
 * @param target path and query
 */
export type EntityTags = (
  shop: Pick<KeyOwner, "shopId" | "branch">,
  target: string,
  state: Omit<Snapshot, "changeCount">,
) => string;

/**
 * @param version the program's version, because another version may render rows differently
 * @param epoch the database's epoch. The tag has the epoch and the shop's branch, because change counts may repeat
 *   after a restore and in another branch.
 */
export function createEntityTags(version: string, epoch: Uint8Array): EntityTags {
  const seed = Bun.hash(epoch) as bigint;
  return ({ shopId, branch }, target, { lastChange, hiddenKeys = "" }) => {
    const name = Bun.hash(`${shopId} ${target} ${hiddenKeys}${branch}`, seed).toString(36);
    return `W/"${version}-${lastChange}-${name}"`;
  };
}

/** Whether a client already has the answer with this tag. The request then names the tag or `*`. */
export function hasTag(request: Request, tag: string): boolean {
  const header = request.headers.get("if-none-match");
  if (header === null) return false;
  if (header === tag || header.trim() === "*") return true;
  const names: string[] = header.match(/"[^"]*"/g) ?? [];
  return names.includes(tag.replace(/^W\//, ""));
}
