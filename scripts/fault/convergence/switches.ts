import type { Fault } from "../../../test/support/platform/faults.ts";
import type { ContractRow } from "../../../test/support/platform/rows.ts";
import { contractsOf } from "./expected.ts";
import type { Life } from "./life.ts";

/** A fault of the platform, or an event that may happen there at any time. */
export interface Switch {
  name: string;
  /** Called at the start of a life. */
  begin?: (life: Life) => void;
  /** Called before each change. */
  step?: (life: Life) => Promise<void> | void;
  /** Called at the end of a life, to end the fault. */
  end?: (life: Life) => Promise<void> | void;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A switch that is on for some minutes, again and again. */
function sometimes(
  name: string,
  {
    on,
    off,
    mostMinutes = 5,
  }: { on: (life: Life) => void; off: (life: Life) => Promise<void> | void; mostMinutes?: number },
): Switch {
  const until = new WeakMap<Life, number>();
  return {
    name,
    async step(life) {
      const end = until.get(life);
      if (end === undefined && life.random.chance(0.04)) {
        until.set(life, life.now() + (1 + life.random.below(mostMinutes)) * MINUTE_MS);
        on(life);
      } else if (end !== undefined && end <= life.now()) {
        until.delete(life);
        await off(life);
      }
    },
    async end(life) {
      if (until.delete(life)) await off(life);
    },
  };
}

const THROTTLED = {
  data: null,
  errors: [{ message: "Throttled", extensions: { code: "THROTTLED" } }],
  extensions: {
    cost: {
      requestedQueryCost: 10,
      actualQueryCost: null,
      throttleStatus: { maximumAvailable: 100_000, currentlyAvailable: 5, restoreRate: 100_000 },
    },
  },
};

const FAILURES: Fault[] = [
  "reset",
  "lost",
  { status: 500, body: "<html>Internal Server Error</html>" },
  { status: 502 },
  { status: 503, headers: { "Retry-After": "1" } },
  { status: 429, headers: { "Retry-After": "2.0" } },
  { status: 200, body: "<html>Something went wrong</html>" },
];

/** Fields without which a contract cannot be mirrored. */
const CONTRACT_FIELDS = [
  "SubscriptionContract.nextBillingDate",
  "SubscriptionContract.status",
  "SubscriptionContract.updatedAt",
  "SubscriptionLine.title",
  "SubscriptionBillingCycle.status",
];
const ORDER_FIELDS = ["Order.updatedAt", "Order.displayFinancialStatus", "LineItem.title"];

/**
 * Picks an unbroken contract with a checkout order. No other contract has the same customer or the same checkout order.
 */
function lonelyContract({ remote, random, broken }: Life): ContractRow | undefined {
  const contracts = contractsOf(remote);
  const lonely = contracts.filter(({ customer, originOrder }, index) => {
    const isShared = contracts.some(
      (other, at) =>
        at !== index && (other.customer === customer || (originOrder && other.originOrder === originOrder)),
    );
    return !isShared;
  });
  const free = lonely.filter((contract) => !broken.has(remote.gid(contract)) && contract.originOrder !== null);
  return free.length === 0 ? undefined : random.pick(free);
}

function freeCustomer({ remote, random, broken }: Life): string | undefined {
  const owners = new Set(contractsOf(remote).map(({ customer }) => remote.gid(customer)));
  const free = remote.ids("customer").filter((id) => !owners.has(id) && !broken.has(id));
  return free.length === 0 ? undefined : random.pick(free);
}

const brokenForNow = new WeakMap<Life, Map<string, { field: string; until: number }>>();

const healing: Switch = {
  name: "bad objects that heal",
  begin: (life) => void brokenForNow.set(life, new Map()),
  step(life) {
    const { random, remote } = life;
    const broken = brokenForNow.get(life);
    for (const [gid, { field, until }] of broken ?? []) {
      if (until > life.now()) continue;
      remote.breakField(gid, field, null);
      broken?.delete(gid);
      life.broken.delete(gid);
    }
    if (!random.chance(0.04)) return;
    remote.errorPaths = random.chance(0.5);
    const contract = lonelyContract(life);
    const order = contract?.originOrder;
    const [gid, field] = random.pick([
      [contract && remote.gid(contract), random.pick(CONTRACT_FIELDS)],
      [order && remote.gid(order), random.pick(ORDER_FIELDS)],
      [freeCustomer(life), "Customer.lastName"],
    ]);
    if (gid == null || life.broken.has(gid)) return;
    remote.breakField(gid, field ?? "", random.chance(0.3) && gid.includes("Contract") ? "ACCESS_DENIED" : undefined);
    broken?.set(gid, { field: field ?? "", until: life.now() + (1 + random.below(10)) * MINUTE_MS });
    life.broken.add(gid);
  },
  end(life) {
    for (const [gid, { field }] of brokenForNow.get(life) ?? []) {
      life.remote.breakField(gid, field, null);
      life.broken.delete(gid);
    }
    life.remote.errorPaths = true;
  },
};

const neverAnswering: Switch = {
  name: "bad objects that never answer",
  step(life) {
    const { random, remote } = life;
    if (life.dead.length >= 3 || !random.chance(0.03)) return;
    const contract = lonelyContract(life);
    const gid = contract && remote.gid(contract);
    const order = contract?.originOrder && remote.gid(contract.originOrder);
    // After its last cycle, a contract is read without its cycles.
    const hasEnd = contract?.maxCycles != null;
    const fields = CONTRACT_FIELDS.filter((each) => !hasEnd || !each.startsWith("SubscriptionBillingCycle."));
    const [bad, subjects, field] = random.pick([
      [gid, [gid], random.pick(fields)],
      [order, [gid, order], random.pick(ORDER_FIELDS)],
      [freeCustomer(life), undefined, "Customer.lastName"],
    ]);
    if (bad == null || field === undefined || life.broken.has(bad) || life.dead.some((each) => each.gid === bad))
      return;
    remote.breakField(bad, field);
    const of = subjects?.flatMap((each) => each ?? []) ?? [`reading of ${bad}`];
    life.dead.push({
      gid: bad,
      field,
      subjects: of,
      unchecked: [bad, ...(gid === undefined || subjects === undefined ? [] : [gid])],
    });
    for (const each of [bad, ...of]) life.broken.add(each);
  },
};

const refusedFields: Switch = {
  name: "refused fields",
  step({ random, remote }) {
    if (!random.chance(0.05)) return;
    const orders = remote.ids("order").filter((id) => remote.find("order", id)?.lineContracts === null);
    if (orders.length > 0) remote.breakField(random.pick(orders), "LineItem.contract", "ACCESS_DENIED");
  },
};

const renamed: Switch = {
  name: "a renamed shop",
  async step(life) {
    const { random, platform, remote } = life;
    if (life.oldDomain === undefined && random.chance(0.01)) {
      life.oldDomain = remote.domain;
      platform.renameShop(remote.domain, `renamed-${platform.shops.size}.myshopify.com`);
      remote.movedTo = random.chance(0.5) ? remote.domain : undefined;
    } else if (random.chance(0.04)) await life.renameHere();
  },
  end: (life) => life.renameHere(),
};

function away(name: string, days: boolean): Switch {
  const since = new WeakMap<Life, number>();
  async function back(life: Life): Promise<void> {
    // If the app was installed again in time, the platform keeps the contracts, even if the shop is connected later.
    const isInTime = life.random.chance(0.5);
    if (days) await life.sleep(49 * HOUR_MS, () => life.cancelAll(isInTime));
    since.delete(life);
    await life.install();
  }
  return {
    name,
    async step(life) {
      const { remote, random } = life;
      const at = since.get(life);
      if (at === undefined && remote.installed && random.chance(days ? 0.004 : 0.01)) {
        since.set(life, life.now());
        remote.uninstall();
        life.lived.wasAway = true;
      } else if (at !== undefined && random.chance(0.05)) await back(life);
    },
    async end(life) {
      if (since.has(life)) await back(life);
    },
  };
}

export const SWITCHES: readonly Switch[] = [
  { name: "nothing" },
  { name: "dropped webhooks", begin: (life) => void Object.assign(life.fates, { dropped: 0.2 }) },
  { name: "doubled webhooks", begin: (life) => void Object.assign(life.fates, { doubled: 0.2 }) },
  { name: "late webhooks", begin: (life) => void Object.assign(life.fates, { late: 0.3 }) },
  {
    name: "late replicas",
    step({ random, remote }) {
      if (!random.chance(0.05)) return;
      remote.replicaLagsMs = Array.from({ length: random.below(5) }, () => random.pick([0, random.below(20_001)]));
    },
    end: ({ remote }) => void Object.assign(remote, { replicaLagsMs: [] }),
  },
  {
    name: "attempts without ids",
    begin: ({ remote }) => void Object.assign(remote, { attemptIds: false }),
  },
  {
    name: "cycles after the last one",
    step({ random, remote }) {
      if (random.chance(0.05)) remote.cyclesAfterEnd = random.pick(["listed", "cut", "refused", "null"]);
    },
  },
  healing,
  neverAnswering,
  refusedFields,
  { name: "failed requests", begin: (life) => life.failRequests(0.05, FAILURES) },
  {
    name: "throttled requests",
    begin: (life) => life.failRequests(0.1, [{ status: 200, body: JSON.stringify(THROTTLED) }]),
  },
  sometimes("costly queries", {
    on: ({ platform, random }) => platform.setMaxQueryCost(random.pick([60, 100, 200])),
    off: ({ platform }) => platform.setMaxQueryCost(1_000),
  }),
  sometimes("short lists", {
    on: ({ remote, random }) => void Object.assign(remote, { maxRows: 20_000 + random.below(5_000) }),
    off: ({ remote }) => void Object.assign(remote, { maxRows: Number.POSITIVE_INFINITY }),
  }),
  sometimes("other versions of the API", {
    on: ({ platform }) => void Object.assign(platform, { versions: { answers: "2026-04", webhooks: "2025-10" } }),
    off: ({ platform }) => void Object.assign(platform, { versions: { answers: "2026-07", webhooks: "2026-07" } }),
  }),
  sometimes("fields that are gone", {
    on: ({ platform, random }) => {
      const fields = ["SubscriptionContract.nextBillingDate", "Order.updatedAt", "Customer.lastName"];
      platform.removedFields = new Set([random.pick(fields)]);
    },
    off: ({ platform }) => void Object.assign(platform, { removedFields: new Set() }),
  }),
  renamed,
  sometimes("a shop that refuses the app", {
    on: ({ remote, random }) => remote.setAccess(random.pick(["frozen", "blocked", "closed", "locked", "suspected"])),
    off: ({ remote }) => remote.setAccess("open"),
  }),
  sometimes("missing approval", {
    on(life) {
      // An approval is missing at most once in a life.
      if (life.lived.lacksApproval) return;
      life.lived.lacksApproval = true;
      life.remote.approvedLevel = life.random.chance(0.5) ? 0 : 1;
      life.unseenSince = life.now();
    },
    off(life) {
      life.remote.approvedLevel = 2;
    },
  }),
  away("an app that is away for minutes", false),
  away("an app that is away for two days", true),
  { name: "restarts", begin: (life) => void Object.assign(life, { restarts: 0.03 }) },
];
