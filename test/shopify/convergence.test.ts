import { expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import type { Order, Subscription } from "../../src/domain/resources.ts";
import { cycleOf } from "../../src/shopify/contracts/renewals.ts";
import { cleanUp } from "../support/cleanup.ts";
import { type ConnectedShop, connected, connectedTo, HOUR_MS, LINE } from "../support/connected.ts";
import type { PlatformShop } from "../support/platform/shop.ts";
import type { Webhook } from "../support/platform/webhook.ts";
import { readRows } from "../support/rows.ts";

/**
 * Fields that can fail. A failure of some fields leaves all other data in the answer. A failure of the others removes a
 * whole list.
 */
const BREAKABLE = [
  "SubscriptionContract.nextBillingDate",
  "SubscriptionContract.status",
  "SubscriptionContract.updatedAt",
  "SubscriptionBillingCycle.status",
  "SubscriptionContract.billingAttempts",
];

/** The changes at the platform. The number chooses the contract or customer, modulo how many there are. */
const CHANGES = {
  sign_up: (remote: PlatformShop, n: number) => {
    const customer = remote.createCustomer({ email: `${n}@example.com`, firstName: "Ada", lastName: String(n) });
    const interval = n % 2 === 0 ? "MONTH" : "WEEK";
    remote.createContract({ customer, lines: [LINE], interval, maxCycles: n % 4 === 3 ? 3 : null });
  },
  rename: (remote, n) => withOne(remote, "customer", n, (id) => remote.updateCustomer(id, { firstName: `Name ${n}` })),
  consent: (remote, n) =>
    withOne(remote, "customer", n, (id) => remote.setConsent(id, n % 3 === 0 ? "subscribed" : "unsubscribed")),
  change_lines: (remote, n) =>
    withOne(remote, "contract", n, (id) => remote.updateContract(id, { lines: [{ ...LINE, quantity: (n % 5) + 1 }] })),
  postpone: (remote, n) =>
    withOne(remote, "contract", n, (id) => remote.setNextBillingDate(id, `2026-0${(n % 5) + 4}-10T00:00:00Z`)),
  pause: (remote, n) => withOne(remote, "contract", n, (id) => remote.pause(id)),
  activate: (remote, n) => withOne(remote, "contract", n, (id) => remote.activate(id)),
  fail: (remote, n) => withOne(remote, "contract", n, (id) => remote.fail(id)),
  cancel: (remote, n) => withOne(remote, "contract", n, (id) => remote.cancel(id)),
  decline: (remote, n) => withAttempt(remote, n, (attempt) => remote.failAttempt(attempt, "CARD_DECLINED")),
  charge: (remote, n) =>
    withAttempt(remote, n, (attempt) =>
      remote.succeedAttempt(attempt, { discounts: [{ title: "Loyalty credit", amount: "1.25" }] }),
    ),
  charge_early: (remote, n) => withAttempt(remote, n, (attempt) => remote.succeedAttempt(attempt), (n % 5) + 4),
  challenge: (remote, n) => withAttempt(remote, n, (attempt) => remote.challenge(attempt)),
  skip: (remote, n) => withOne(remote, "contract", n, (id) => remote.skipCycle(id, (n % 3) + 1)),
  unskip: (remote, n) => withOne(remote, "contract", n, (id) => remote.unskipCycle(id, (n % 3) + 1)),
  cycles_after_end: (remote, n) => {
    remote.cyclesAfterEnd = (["listed", "cut", "refused", "null"] as const)[n % 4] ?? "listed";
  },
  buy_once: (remote) => void remote.placeOrder(),
  break_field: (remote, n) =>
    withOne(remote, "contract", n, (id) => {
      remote.errorPaths = n % 2 === 0;
      remote.breakField(id, BREAKABLE[n % BREAKABLE.length] ?? "", n % 5 === 0 ? "ACCESS_DENIED" : undefined);
    }),
  mend_fields: (remote) => remote.mendFields(),
  late_replicas: (remote, n) => {
    remote.replicaLagsMs = n % 4 === 0 ? [] : [n * 1_000, 0, (n % 3) * 7_000];
  },
} satisfies Record<string, (remote: PlatformShop, n: number) => void>;

function withOne(
  remote: PlatformShop,
  kind: "customer" | "contract",
  n: number,
  change: (id: string) => unknown,
): void {
  const ids = remote.ids(kind);
  const id = ids[n % Math.max(1, ids.length)];
  if (id !== undefined) tryChange(() => change(id));
}

/** Changes an attempt of a cycle that is not charged yet: an open attempt, or a new one. */
function withAttempt(remote: PlatformShop, n: number, change: (attempt: string) => unknown, cycle = (n % 3) + 1): void {
  withOne(remote, "contract", n, (id) => {
    const contract = remote.find("contract", id);
    if (cycle > (contract?.maxCycles ?? cycle)) return;
    const attempts = contract?.attempts.filter(({ cycleIndex }) => cycleIndex === cycle) ?? [];
    if (attempts.some(({ state }) => state === "succeeded")) return;
    const open = attempts.find(({ state }) => state !== "failed");
    change(open === undefined ? remote.startAttempt(id, cycle) : remote.gid(open));
  });
}

/** Makes a change, unless the platform refuses it. */
function tryChange(change: () => unknown): void {
  try {
    change();
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown;
  }
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom(...(Object.keys(CHANGES) as (keyof typeof CHANGES)[])), n: fc.nat(20) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("deliver" as const), n: fc.nat(1000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), n: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reconcile" as const), n: fc.constant(0) }) },
);

/** Delivers some webhooks, out of order, and a few of them twice. The others are lost. */
async function deliverSome({ send, processed }: ConnectedShop, webhooks: Webhook[], n: number): Promise<void> {
  const order = webhooks
    .map((webhook, index) => ({ webhook, rank: (index * 7919 + n * 104_729) % 1009 }))
    .toSorted((a, b) => a.rank - b.rank);
  for (const [index, { webhook, rank }] of order.entries()) {
    if (rank % 4 === 0) continue;
    expect((await send(webhook)).status).toBe(200);
    if (rank % 5 === 0) expect((await send(webhook)).status).toBe(200);
    if (index % 3 === 0) await processed();
  }
  await processed();
}

/**
 * Reads the mirror. Leaves out times that only the mirror knows: when it first saw a person, and when it saw a
 * cancellation.
 */
async function mirrorOf(all: ConnectedShop): Promise<unknown> {
  const { shop, remote } = all;
  const [customers, subscriptions, orders] = await Promise.all(
    ["customers", "subscriptions", "orders"].map((resource) => shop.all(resource)),
  );
  const gids = new Map(subscriptions?.map(({ id, shopifyId }) => [id, String(shopifyId)]));
  const cycle = await cyclesOf(all, [...gids.values()]);
  const hasAttempts = (order: Record<string, unknown>) => {
    const contract = gids.get(order["contractId"]) ?? "";
    return (
      remote.find("contract", contract)?.attempts.some(({ cycleIndex }) => cycleIndex === cycle(contract, order)) ===
      true
    );
  };
  const by = (rows: Record<string, unknown>[] = []) =>
    rows.toSorted((a, b) => String(a["id"]).localeCompare(String(b["id"])));
  return {
    customers: by(customers).map(({ createdAt: _createdAt, ...rest }) => rest),
    subscriptions: by(subscriptions).map(({ cancelledAt: _cancelledAt, ...rest }) => rest),
    // A skip leaves traces in the mirror: the cycle keeps its first date, and its row stays when the skip ends. The
    // numbers and ids of renewals depend on which cycle became a renewal first. This result leaves out both.
    orders: by(
      orders
        ?.filter((order) => order["status"] !== "PENDING" || hasAttempts(order))
        .map(({ id: _id, billedAt: _billedAt, cycleNumber, ...rest }) => {
          const index = cycle(gids.get(rest["contractId"]) ?? "", { cycleNumber });
          return { ...rest, id: `${rest["contractId"]} ${index}` };
        }),
    ),
  };
}

/** Makes a function that returns the platform's cycle of an order. */
async function cyclesOf({ test, shop }: ConnectedShop, contracts: string[]) {
  const reads = await test.app.store.mirror.contractReads(shop.shop, contracts);
  return (contract: string, { cycleNumber }: { cycleNumber?: unknown }) =>
    cycleNumber === 0 ? 0 : cycleOf(Number(cycleNumber), reads.get(contract)?.renewals ?? []);
}

function queuedEvents({ test }: ConnectedShop): { topic: string; data: Record<string, unknown> }[] {
  return readRows(join(test.folder, "data"), "deliveries").map(({ body }) => JSON.parse(String(body)));
}

/**
 * Checks that each change and each attempt has one event. Each event of a contract differs from the event before. The
 * last event has the state of the contract.
 */
async function checkEvents(all: ConnectedShop): Promise<void> {
  const events = queuedEvents(all);
  const subscriptions = (await all.shop.all("subscriptions")) as Subscription[];
  for (const { shopifyId, status, nextBillingDate } of subscriptions) {
    const isOwn = /^subscription\.(created|updated)$/;
    const own = events.filter(({ topic, data }) => data["contract_id"] === shopifyId && isOwn.test(topic));
    const states = own.map(({ data }) => `${data["status"]} ${data["next_billing_date"]}`);
    expect(own.map(({ topic }) => topic).indexOf("subscription.created")).toBe(0);
    expect(states.filter((state, index) => state === states[index - 1])).toEqual([]);
    expect(states.at(-1)).toBe(`${status} ${nextBillingDate}`);
  }
  const gids = subscriptions.flatMap(({ shopifyId }) => shopifyId);
  const cycle = await cyclesOf(all, gids);
  for (const order of (await all.shop.all("orders")) as Order[]) {
    const contract = subscriptions.find(({ id }) => id === order.contractId)?.shopifyId;
    const ofCycle = events.filter(
      ({ topic, data }) =>
        topic.startsWith("order.") && data["contract_id"] === contract && data["cycle_number"] === order.cycleNumber,
    );
    const attempts = all.remote.find("contract", contract ?? "")?.attempts ?? [];
    const index = cycle(contract ?? "", order);
    const failed = attempts.filter(({ cycleIndex, state }) => cycleIndex === index && state === "failed");
    const declines = ofCycle.filter(({ topic }) => topic === "order.failed").map(({ data }) => data["attempt_count"]);
    expect(declines).toEqual(failed.map((_, index) => index + 1));
    const charges = ofCycle.filter(({ topic }) => topic !== "order.failed").map(({ topic }) => topic);
    const charged = { PAID: ["order.charged"], RECOVERED: ["order.recovered"] } as Record<string, string[]>;
    expect(charges).toEqual(charged[order.status] ?? []);
  }
}

/** Checks that, after an hour, no two items in the inbox are about the same object. */
async function checkInbox(all: ConnectedShop): Promise<void> {
  await all.processedAfter(HOUR_MS);
  const subjects = (await all.inbox()).map(({ subject }) => subject);
  expect(subjects).toEqual([...new Set(subjects)]);
}

test("webhooks in any order and reconciling give the platform's state, and one event for each change", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 30 }), async (steps) => {
      try {
        const all = await connected();
        const { test, remote, shop, platform } = all;
        await all.queueAllEvents();
        await test.app.platform.synchronizer.load(shop.shop, { events: false });
        test.clock.ms += HOUR_MS;
        CHANGES.sign_up(remote, 0);
        CHANGES.sign_up(remote, 1);
        for (const { do: what, n } of steps) {
          test.clock.ms += 1_000;
          if (what === "wait") test.clock.ms += n * 60_000;
          else if (what === "reconcile") await test.app.platform.synchronizer.reconcile(shop.shop);
          else if (what === "deliver") await deliverSome(all, remote.outgoing.splice(0), n);
          else CHANGES[what](remote, n);
        }
        test.clock.ms += 60_000;
        remote.replicaLagsMs = [];
        await test.app.platform.synchronizer.reconcile(shop.shop);
        await checkInbox(all);
        remote.mendFields();
        await all.processedAfter(HOUR_MS);
        await test.app.platform.synchronizer.reconcile(shop.shop);
        const fresh = await connectedTo(platform, {}, test.clock.ms);
        await fresh.load();
        expect(await mirrorOf(all)).toEqual(await mirrorOf(fresh));
        await checkEvents(all);
        expect(platform.invalid).toEqual([]);
      } finally {
        await cleanUp();
      }
    }),
    { numRuns: Number(process.env["SDS_RUNS"] ?? 25) },
  );
});
