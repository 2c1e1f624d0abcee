import type { SQL } from "bun";
import { customerId } from "../../src/domain/ids.ts";
import { type ClusterNode, type ClusterShop, pick, postRecords } from "./cluster-traffic.ts";

const LARGE = 250;
const SMALL = 6;
const VERSIONS = 5;

/** The names that the mirror may have of each customer, by gid. Several, if a post was not acknowledged. */
type Expected = Map<string, Set<string>>;

/**
 * Posts large bodies and then newer records of the same customers to another node, one after the other, as a sender
 * does. A large body must never overwrite records that were acknowledged after it.
 */
export function startOrderedPosts(shop: ClusterShop, nodes: readonly ClusterNode[], sql: SQL) {
  const settled: Expected[] = [];
  const problems: string[] = [];
  let isOver = false;
  let bodies = 0;

  /** @returns whether the post can no longer change the mirror */
  async function post(expected: Expected, gids: readonly string[], firstName: string): Promise<boolean> {
    const node = pick(nodes);
    const address = node.address();
    const records = gids.map((shopifyId) => ({ type: "customer", shopifyId, firstName }));
    const status = await postRecords(address, shop, records);
    const isAcknowledged = status === 202;
    for (const gid of gids) {
      const allowed = isAcknowledged ? new Set<string>() : (expected.get(gid) ?? new Set(["nothing"]));
      expected.set(gid, allowed.add(firstName));
    }
    if (isAcknowledged && gids.length === LARGE) {
      bodies += 1;
      await checkOne(gids.at(-1) ?? "", firstName);
    }
    // A node that gave no answer may still apply the post, unless it was killed.
    return status !== undefined || node.isKilled(address);
  }

  async function nameOf(gid: string): Promise<string | undefined> {
    const [row] = await sql.unsafe(`SELECT json FROM customers WHERE id = '${customerId(shop.domain, gid)}'`);
    return row === undefined ? "nothing" : JSON.parse(row.json).firstName;
  }

  /** A body is acknowledged when it is applied. */
  async function checkOne(gid: string, firstName: string): Promise<void> {
    const found = await nameOf(gid).catch(() => undefined);
    if (found !== undefined && found !== firstName)
      problems.push(`${gid} was acknowledged as ${firstName} and is ${found}`);
  }

  async function postInOrder(): Promise<void> {
    for (let generation = 1; !isOver; generation += 1) {
      const gids = Array.from({ length: LARGE }, (_, n) => `gid://shopify/Customer/${generation * 1_000 + n}`);
      const few = [...gids.slice(0, SMALL / 2), ...gids.slice(-SMALL / 2)];
      const expected: Expected = new Map();
      let isKnown = true;
      for (let version = 1; version <= VERSIONS && isKnown && !isOver; version += 1) {
        isKnown = await post(expected, gids, `large ${version}`);
        for (let turn = 1; turn <= 2 && isKnown; turn += 1)
          isKnown = await post(expected, few, `small ${version} ${turn}`);
        await Bun.sleep(100);
      }
      if (isKnown) settled.push(expected);
    }
  }

  const posting = postInOrder();
  return {
    /** Compares at the end. @returns what is wrong */
    async end(): Promise<string[]> {
      isOver = true;
      await posting;
      for (const expected of settled)
        for (const [gid, allowed] of expected) {
          const found = (await nameOf(gid)) ?? "";
          if (!allowed.has(found))
            problems.push(`${gid} of ${shop.domain} is ${found}, not ${[...allowed].join(" or ")}`);
        }
      return problems;
    },
    count: () => bodies,
  };
}
