import type { Shop } from "../../domain/shop.ts";
import { queryInBatches } from "../api/batches.ts";
import type { AttemptNode } from "../api/operations/attempts.ts";
import type { ContractWithAttempts } from "../api/operations/contracts.ts";
import { type CycleAddress, type CycleState, cycleLookup, MAX_CYCLES_PER_LOOKUP } from "../api/operations/cycles.ts";
import { PlatformError } from "../api/platform-error.ts";
import { hasNextBilling, intervalMs, lastCycle, settledTime } from "./cycles.ts";
import type { History } from "./history.ts";
import { type ContractRecords, type ContractSource, readContractFrom, readContractWith } from "./reader.ts";
import { requireShape } from "./shapes.ts";
import { dateFrom } from "./values.ts";

/** For each contract gid: the two cycles after the billed cycles. At the end of a contract, there are fewer cycles. */
export type PageCycles = ReadonlyMap<string, readonly CycleState[]>;

/**
 * Reads a page of contracts for few points. Most contracts have only successful attempts, one for each cycle so far.
 * Then the next two cycles complete the history. Example: a contract has five attempts, and cycles 6 and 7 are not
 * charged. So the attempts were for cycles 1 to 5.
 * @param cycles from `readPageCycles`, if they are read already
 * @returns for each contract its records, or why it cannot be read @throws PlatformError
 */
export async function readContractPage(
  source: ContractSource,
  shop: Shop,
  nodes: readonly ContractWithAttempts[],
  cycles?: PageCycles,
): Promise<PromiseSettledResult<ContractRecords>[]> {
  const { settingsOf, now } = source;
  const settledBefore = settledTime((await settingsOf(shop.id)).retryDays, now());
  const open = cycles ?? (await readPageCycles(source, shop, nodes));
  return Promise.allSettled(
    nodes.map(async (each) => {
      const node = checkedContract(each);
      const openCycles = open.get(node.id);
      const history = openCycles && regularHistory(node, openCycles, settledBefore);
      return history === undefined
        ? readContractFrom(source, shop, node, attemptCount(node))
        : readContractWith(source, shop, node, history);
    }),
  );
}

/** Reads the cycles that `readContractPage` needs for most contracts. @throws PlatformError */
export async function readPageCycles(
  source: ContractSource,
  shop: Shop,
  nodes: readonly ContractWithAttempts[],
): Promise<PageCycles> {
  const checked = await Promise.allSettled(nodes.map(async (node) => checkedContract(node)));
  const whole = checked.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const regular = whole.filter(
    (node) => hasOnlySuccesses(node) && node.billingAttempts.nodes.length <= lastCycle(node),
  );
  return readOpenCycles(source, shop, regular);
}

/** Reads for each contract the two cycles after its attempts. Leaves out a contract if its cycles are refused. */
async function readOpenCycles(
  { client, sizes }: ContractSource,
  shop: Shop,
  nodes: readonly ContractWithAttempts[],
): Promise<PageCycles> {
  const addresses = nodes.flatMap((node) => {
    const count = node.billingAttempts.nodes.length;
    const indexes = [count + 1, count + 2].filter((index) => index <= lastCycle(node));
    return indexes.map((index) => ({ contract: node.id, index }));
  });
  const query = (part: readonly CycleAddress[]) => lookUp(client, shop, part);
  const batch = { sizes, shop, operation: "CycleLookup", most: MAX_CYCLES_PER_LOOKUP, query };
  const cycles = (await queryInBatches(batch, addresses)).map((each) =>
    each.status === "fulfilled" ? each.value : null,
  );
  const open = new Map(nodes.map(({ id }): [string, CycleState[]] => [id, []]));
  for (const [index, { contract }] of addresses.entries()) {
    const cycle = cycles[index] ?? null;
    if (cycle === null) open.delete(contract);
    else open.get(contract)?.push(cycle);
  }
  return open;
}

/** Reads cycles by their addresses. A cycle that the platform refuses is null. @throws PlatformError */
async function lookUp(
  client: ContractSource["client"],
  shop: Shop,
  addresses: readonly CycleAddress[],
): Promise<PromiseSettledResult<CycleState | null>[]> {
  const { operation, variables } = cycleLookup(addresses);
  let cycles: Record<string, CycleState | null>;
  try {
    cycles = await client.query(shop, operation, variables);
  } catch (thrown) {
    const data = thrown instanceof PlatformError ? thrown.partial?.data : undefined;
    if (data === undefined || Object.keys(data).length === 0) throw thrown;
    cycles = data as typeof cycles;
  }
  return addresses.map((_, index) => ({ status: "fulfilled", value: cycles[`c${index}`] ?? null }));
}

/** Checks a contract of a page. @throws SdsError `bad_record` */
function checkedContract(node: ContractWithAttempts): ContractWithAttempts {
  const { createdAt, updatedAt } = requireShape("a contract of a page", node);
  dateFrom(createdAt);
  dateFrom(updatedAt);
  return node;
}

function hasOnlySuccesses({ billingAttempts: { nodes, pageInfo } }: ContractWithAttempts): boolean {
  const isSuccess = ({ state }: AttemptNode) => state.__typename === "SubscriptionBillingAttemptSuccessState";
  return !pageInfo.hasNextPage && nodes.every(isSuccess);
}

function attemptCount({ billingAttempts: { nodes, pageInfo } }: ContractWithAttempts): number | undefined {
  return pageInfo.hasNextPage ? undefined : nodes.length;
}

/**
 * Makes a history with one attempt for each cycle, from cycle 1 on.
 * @returns undefined if the open cycles or the times contradict this history
 */
function regularHistory(
  node: ContractWithAttempts,
  open: readonly CycleState[],
  settledBefore: number,
): History | undefined {
  const attempts = node.billingAttempts.nodes.toSorted((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt));
  const areOpen = open.every(({ status, edited }) => status === "UNBILLED" && !edited);
  if (!areOpen) return undefined;
  const [next] = open;
  const isDue = next !== undefined && !next.skipped && Date.parse(next.billingAttemptExpectedDate) >= settledBefore;
  if (next !== undefined && !isDue && hasNextBilling(node)) return undefined;
  const times = attempts.map(({ createdAt }) => createdAt);
  if (next !== undefined) times.push(next.billingAttemptExpectedDate);
  if (!followEachOther(node, times)) return undefined;
  const billed = attempts.map((attempt, index) => ({
    cycleIndex: index + 1,
    skipped: false,
    billingAttemptExpectedDate: attempt.createdAt,
    attempts: [attempt],
    editedLines: undefined,
  }));
  const unbilled = open.map((cycle) => ({ ...cycle, attempts: [], editedLines: undefined }));
  return { cycles: [...billed, ...unbilled], next: isDue ? next : undefined };
}

/** Whether each time is roughly one interval after the previous time. If not, a cycle was left out or charged twice. */
function followEachOther({ billingPolicy }: ContractWithAttempts, times: readonly string[]): boolean {
  const { min, max } = intervalMs(billingPolicy);
  const gaps = times.slice(1).map((time, index) => Date.parse(time) - Date.parse(times[index] ?? time));
  return gaps.every((gap) => gap > 0.5 * min && gap < 1.5 * max);
}
