import { importSecret, signBody } from "../client/signature.ts";
import { messageOf } from "../domain/error.ts";
import { createGroupCommit } from "../lib/group-commit.ts";
import { splitJson } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import type { IntakeSecret } from "../store/port/shops.ts";
import { INTAKE_LIMIT, MAX_INTAKE_RECORDS } from "./refusals.ts";

/** Header that marks a post from another node. Such a post is not passed on again. */
export const FORWARDED = "x-sds-forwarded";
/**
 * A shop is busy above this number of posts a second. Below this number, the commits of several nodes seldom wait for
 * each other. Then forwarding posts would cost more than it saves.
 */
const BUSY_PER_SECOND = 50;
/** Maximum number of shops whose posts are counted. */
const MAX_COUNTED = 10_000;
/** Timeout of a post to another node. After a timeout or a network error, that node gets no records for `PAUSE_MS`. */
const TIMEOUT_MS = 500;
const PAUSE_MS = 5_000;
/**
 * How long a shop's next request to another node waits for the running request. The wait is longer while four requests
 * of the shop run. Posts that wait share a request.
 */
const SHARED_AFTER_MS = 1;

/** A post whose signature is right. */
interface SignedPost {
  signer: IntakeSecret;
  text: string;
}

/** A post of a busy shop. */
interface ForwardedPost {
  signer: IntakeSecret;
  /** The JSON of each record. */
  records: readonly string[];
  bytes: number;
}

interface Dependencies {
  /** See `Membership.ownerUrl`. */
  ownerUrl(shopId: number): string | undefined;
  fetch: typeof globalThis.fetch;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
}

/**
 * If a shop is busy, passes the records of a post on to the node that works for the shop. Otherwise several nodes would
 * commit for this shop, and wait for each other. The other node checks the records as if they came from outside.
 * @returns how many records the other node has committed; undefined if this node must commit the records. If both nodes
 *   commit a record, it is applied once.
 */
export type ForwardPost = (post: SignedPost) => Promise<number | undefined>;

export function createForwarder({ ownerUrl, fetch, clock, log }: Dependencies): ForwardPost {
  const isBusy = countBusy(clock);
  const groupOf = createGroups((posts) => send(posts));
  /** Maps a node's URL to the time when its pause ends. Before that time, the failed node gets no records. */
  const pausedUntil = new Map<string, number>();

  /** Posts records to another node, signed like the shop's own posts. @returns whether that node took the records */
  async function send(posts: readonly ForwardedPost[]): Promise<boolean> {
    const [first] = posts;
    const url = first && usableUrl(first.signer.shop.id);
    if (first === undefined || url === undefined) return false;
    const { shop, secret } = first.signer;
    const body = Uint8Array.from(Buffer.from(`[${posts.flatMap(({ records }) => records).join(",")}]`));
    const signature = await signBody(await importSecret(secret), body);
    const headers = { "X-Service-Shop": shop.domain, "X-Service-Signature": signature, [FORWARDED]: "1" };
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const request = { method: "POST", body, headers, redirect: "manual", signal, proxy: false } as RequestInit;
      const answer = await fetch(`${url}/intake`, request);
      await answer.arrayBuffer();
      return answer.status === 202;
    } catch (thrown) {
      pausedUntil.set(url, clock() + PAUSE_MS);
      log.warn("another node does not take records; this node commits them", { url, error: messageOf(thrown) });
      return false;
    }
  }

  function usableUrl(shopId: number): string | undefined {
    const url = ownerUrl(shopId);
    return url === undefined || clock() < (pausedUntil.get(url) ?? 0) ? undefined : url;
  }

  return async ({ signer, text }) => {
    const { id } = signer.shop;
    if (usableUrl(id) === undefined || !isBusy(id)) return undefined;
    const records = [...splitJson(text)];
    // This node itself answers a post with no records or too many records.
    if (records.length === 0 || records.length > MAX_INTAKE_RECORDS) return undefined;
    const isTaken = await groupOf(id).submit({ signer, records, bytes: Buffer.byteLength(text) });
    return isTaken ? records.length : undefined;
  };
}

/** Returns a function that counts a post of a shop, and tells whether the shop is busy. */
function countBusy(clock: () => number): (shopId: number) => boolean {
  /** The number of posts of each shop, in this second and in the previous second. */
  let [counts, before] = [new Map<number, number>(), new Map<number, number>()];
  let second = 0;
  return (shopId) => {
    const now = Math.floor(clock() / 1_000);
    if (now !== second) before = now === second + 1 ? counts : new Map();
    if (now !== second || counts.size > MAX_COUNTED) counts = new Map();
    second = now;
    const count = (counts.get(shopId) ?? 0) + 1;
    counts.set(shopId, count);
    return Math.max(count, before.get(shopId) ?? 0) > BUSY_PER_SECOND;
  };
}

/** Returns a function that gets a shop's group. A group joins posts that arrive together, and sends one post. */
function createGroups(send: (posts: readonly ForwardedPost[]) => Promise<boolean>) {
  const createGroup = () =>
    createGroupCommit<ForwardedPost, boolean>({
      async commit(posts) {
        const isTaken = await send(posts);
        return posts.map(() => isTaken);
      },
      sizeOf: ({ records, bytes }) => Math.max(records.length / MAX_INTAKE_RECORDS, bytes / INTAKE_LIMIT.maxBytes),
      maxSize: 1,
      failsAll: () => true,
      overtaking: { afterMs: SHARED_AFTER_MS, keyOf: (post) => post },
    });
  const groups = new Map<number, ReturnType<typeof createGroup>>();
  return (shopId: number) => {
    const group = groups.get(shopId) ?? createGroup();
    groups.set(shopId, group);
    return group;
  };
}
