import type { Event } from "../../src/domain/events/event.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import { MAX_INTAKE_RECORDS } from "../../src/http/refusals.ts";
import type { AttemptResult, Claim } from "../../src/store/port/deliveries.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { customer, reward, subscription } from "../support/records.ts";
import { commit, HOUR, URL } from "./fixtures.ts";

export const event: Event = { topic: "order.charged", data: { cents: 5 } };
export const notFound = { name: "SdsError", code: "not_found" };

/**
 * Adds one reward of customer 1 for each id, so that one webhook is queued for each. The shop needs an endpoint. The
 * intake's limit of records per body also limits each commit.
 */
export async function queueRewards(
  store: Store,
  shop: MirroredShop,
  ids: readonly (string | number)[],
  now = START,
): Promise<void> {
  await commit(store, shop, [customer(1)], now);
  for (let at = 0; at < ids.length; at += MAX_INTAKE_RECORDS) {
    const part = ids.slice(at, at + MAX_INTAKE_RECORDS);
    await commit(
      store,
      shop,
      part.map((id) => reward(`r${id}`, { source: "loyalty" })),
      now,
    );
  }
}

export const WAITS = [1_000, 10_000];
export const LEASE = 60_000;

/** Claims due deliveries: webhooks, and then workflow triggers. */
export async function claim(
  store: Store,
  shop: MirroredShop,
  { share = 10_000, now = START, ended = [] as AttemptResult[] } = {},
): Promise<Claim[]> {
  const claims: Claim[] = [];
  for (const kind of ["webhook", "trigger"] as const) {
    const results = kind === "webhook" ? ended : [];
    const asked = [{ shopId: shop.id, kind, count: share - claims.length }];
    claims.push(...(await store.deliveries.recordAndClaim(results, asked, now, now + LEASE, WAITS)).claimed);
  }
  return claims;
}

/** Claims one due delivery. @throws if nothing is due */
export async function claimOne(
  store: Store,
  shop: MirroredShop,
  options: Parameters<typeof claim>[2] = {},
): Promise<Claim> {
  const [claimed] = await claim(store, shop, { ...options, share: 1 });
  if (claimed === undefined) throw new Error("nothing was claimed");
  return claimed;
}

/** Claims webhooks of several shops in one transaction. @param shares each shop with its maximum of deliveries */
export async function claimShares(
  store: Store,
  shares: readonly (readonly [MirroredShop, number])[],
  now = START,
): Promise<Claim[]> {
  const asked = shares.map(([{ id }, count]) => ({ shopId: id, kind: "webhook" as const, count }));
  return (await store.deliveries.recordAndClaim([], asked, now, START + LEASE, WAITS)).claimed;
}

/** Lists the ids of the shops with due deliveries. */
export async function dueShopIds(store: Store, now: number): Promise<number[]> {
  return [...new Set((await store.deliveries.dueQueues(now)).map(({ shopId }) => shopId))];
}

/**
 * Records results of attempts, and claims nothing. If `waits` is empty, a failed delivery becomes dead.
 * @returns the recorded results
 */
export async function record(
  store: Store,
  ended: readonly AttemptResult[],
  waits: readonly number[] = WAITS,
): Promise<AttemptResult[]> {
  const { recorded } = await store.deliveries.recordAndClaim(ended, [], START, START, waits);
  return recorded;
}

export function succeeded(claimed: Claim, startedAt = START): AttemptResult {
  return { claim: claimed, outcome: { statusCode: 200, error: null, url: URL, answer: "ok" }, startedAt, duration: 5 };
}

export function failed(claimed: Claim, startedAt = START): AttemptResult {
  return {
    claim: claimed,
    outcome: { statusCode: 500, error: "The endpoint responded with HTTP 500.", url: URL, answer: "no" },
    startedAt,
    duration: 7,
  };
}

/** Claims the due deliveries, and records results that give them the status `how`. A retry is planned in an hour. */
export async function end(
  store: Store,
  shop: MirroredShop,
  how: "dead" | "delivered" | "retrying",
  now = START,
  share = 10_000,
): Promise<Claim[]> {
  const claims = await claim(store, shop, { now, share });
  await record(
    store,
    claims.map((each) => (how === "delivered" ? succeeded(each, now) : failed(each, now))),
    how === "retrying" ? [HOUR] : [],
  );
  return claims;
}

/** Makes a webhook and a trigger of each status, oldest first: delivered, dead, retrying, pending. */
export async function fill(store: Store, shop: MirroredShop): Promise<void> {
  for (const [n, how] of (["delivered", "dead", "retrying"] as const).entries()) {
    await commit(store, shop, [subscription(n + 1)], START + n);
    await end(store, shop, how, START + n);
  }
  await commit(store, shop, [subscription(9)], START + 3);
}
