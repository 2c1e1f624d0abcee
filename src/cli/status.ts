import { hostname } from "node:os";
import type { Command } from "commander";
import { version } from "../../package.json";
import { operatorLoadText, unfinishedLoad } from "../actions/shop.ts";
import { messageOf, SdsError } from "../domain/error.ts";
import { PARTITIONS } from "../domain/shop.ts";
import { printable } from "../lib/log.ts";
import { createSlots } from "../lib/slots.ts";
import { bytesText, counted } from "../lib/text.ts";
import { isoUtc, isoUtcOrNull } from "../lib/time.ts";
import { keptStores } from "../store/open-store.ts";
import type { NodeStatus } from "../store/port/nodes.ts";
import type { DatabaseFigures, Store } from "../store/port/store.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, withStore } from "./context.ts";
import { printJson, printLine, printTable } from "./print.ts";

/** Time limit of a request to a node. It must be above the 2 s that a node waits for a locked database. */
const READY_TIMEOUT_MS = 5_000;
const SHOPS_AT_ONCE = 10;
/** How many shops are shown without `--all`. */
const SHOWN_SHOPS = 10;

export function addCommands(program: SdsCommand): void {
  program
    .command("status")
    .description(
      "show whether `sds serve` runs and is ready, and what waits or failed in each shop; " +
        "exit status 1 if it is not ready",
    )
    .option("--all", `show all shops, not only the ${SHOWN_SHOPS} that need somebody most`)
    .jsonOption()
    .examples("sds status")
    .action(async ({ all = false, json }: JsonFlag & { all?: boolean }, command: Command) => {
      const { database, data } = configOf(command);
      const engine = database === null ? "sqlite" : "postgres";
      const { problem, shops, totals, cluster, figures } = await withStore(command, (store) => readStatus(store, all));
      const files = database === null ? { kept: await keptStores(data) } : {};
      const service = { serving: problem === null, version, engine, database: databaseEntry(figures), totals, shops };
      if (json) printJson({ ...service, ...files, ...cluster });
      else print(service, cluster, files.kept ?? []);
      const obsolete = shops.flatMap(({ warnings }) => warnings).find(({ isFailure }) => isFailure);
      if (problem === null && obsolete !== undefined) throw new SdsError("failed", obsolete.text);
      if (problem !== null) throw new SdsError("failed", `not serving: ${problem}`);
    });
}

/** Reads the status. @returns `problem`: why `serve` is not ready, null if it is ready; `cluster`: null with SQLite */
async function readStatus(store: Store, isWhole: boolean) {
  const cluster = (await store.nodes?.status()) ?? null;
  const problem =
    cluster === null
      ? await findProblem(await store.sessions.address())
      : await findClusterProblem(store, cluster.nodes);
  const slots = createSlots(SHOPS_AT_ONCE);
  const listed = await store.shops.list();
  const chosen = isWhole || listed.length <= SHOWN_SHOPS ? listed : await store.shops.neediest(SHOWN_SHOPS);
  const shops = await Promise.all(chosen.map((shop) => slots.run(() => workOf(store, shop))));
  return {
    problem,
    shops,
    totals: await totalsOf(store, listed.length),
    figures: await store.figures(),
    cluster: cluster === null ? null : { nodes: cluster.nodes.map(nodeEntry), handOvers: cluster.handOvers },
  };
}

/**
 * Returns why the cluster cannot take work; null if it can. Checks the database as `/readyz` does. Asks only nodes on
 * this machine, because other nodes may be unreachable from here.
 */
async function findClusterProblem(store: Store, nodes: readonly NodeStatus[]): Promise<string | null> {
  const alive = nodes.filter(({ isAlive }) => isAlive);
  if (alive.length === 0) return "no node is alive";
  try {
    await store.check();
  } catch (thrown) {
    return messageOf(thrown);
  }
  const problems = await Promise.all(
    alive.filter(({ host }) => host === hostname()).map(({ address }) => findProblem(address ?? undefined)),
  );
  return problems.find((problem) => problem !== null) ?? null;
}

async function findProblem(address: string | undefined): Promise<string | null> {
  if (address === undefined) return "`sds serve` does not run";
  try {
    const signal = AbortSignal.timeout(READY_TIMEOUT_MS);
    const response = await fetch(`${address}/readyz`, { signal, proxy: false } as RequestInit);
    return response.ok ? null : `${address} answers with ${response.status}: ${reasonIn(await response.text())}`;
  } catch (thrown) {
    return `${address} does not answer: ${messageOf(thrown)}`;
  }
}

/** Reads the message in the body of an error. The answer of another program has no such message. */
function reasonIn(body: string): string {
  try {
    return (JSON.parse(body) as { error: { message: string } }).error.message;
  } catch {
    return "it is not sds";
  }
}

/** Sums up all shops. The number of statements does not grow with the number of shops. */
async function totalsOf(store: Store, shops: number) {
  const { deliveries, inbox, refusedShops, reconciledAt } = await store.totals.read(Date.now());
  return {
    shops,
    ...deliveries,
    inboxWaiting: inbox.waiting,
    inboxFailed: inbox.failed,
    refusedShops,
    oldestReconciledAt: isoUtcOrNull(reconciledAt),
  };
}

/** Counts a shop's waiting and failed work, and reads what its operator has to know about the platform. */
async function workOf(store: Store, { id, domain }: { id: number; domain: string }) {
  const { connections, deliveries, inbox, syncs } = store;
  const [{ pending, retrying }, dead, items, load, reconciliation, connection, warnings, uninstallation] =
    await Promise.all([
      deliveries.countWaiting(id),
      deliveries.countDead(id, 0),
      inbox.count(id),
      unfinishedLoad(store, id, Date.now()),
      syncs.lastComplete(id, "changes"),
      connections.find(id),
      connections.warnings(id),
      connections.uninstallation(id),
    ]);
  return {
    domain,
    pending,
    retrying,
    dead,
    inboxWaiting: items.waiting,
    inboxFailed: items.failed,
    load: load === null ? null : operatorLoadText(load),
    reconciledAt: isoUtcOrNull(reconciliation?.endedAt ?? null),
    trouble: connection?.trouble ?? null,
    troubleSince: isoUtcOrNull(connection?.troubleSince ?? null),
    warnings: warnings.map(({ kind, text, since }) => ({
      text,
      since: isoUtc(since),
      isFailure: kind.startsWith("operation "),
    })),
    uninstalledAt: isoUtcOrNull(uninstallation?.uninstalledAt ?? null),
  };
}

function databaseEntry({ bytes, walBytes, lastBackupAt }: DatabaseFigures) {
  return { bytes, walBytes, lastBackupAt: isoUtcOrNull(lastBackupAt) };
}

function nodeEntry({ id, address, host, processId, version, startedAt, heartbeatAt, isAlive, shops }: NodeStatus) {
  const times = { startedAt: isoUtc(startedAt), heartbeatAt: isoUtc(heartbeatAt) };
  return { id, address, host, process: processId, version, ...times, alive: isAlive, shops };
}

/** Describes the database. Only SQLite's line names a backup, because PostgreSQL's own tools make its backups. */
function databaseText({ bytes, walBytes, lastBackupAt }: ReturnType<typeof databaseEntry>): string {
  if (walBytes === null) return `database: ${bytesText(bytes)}`;
  const backup = lastBackupAt === null ? "no backup known" : `last backup ${lastBackupAt}`;
  return `database: ${bytesText(bytes)}, its log ${bytesText(walBytes)}, ${backup}`;
}

function totalsText({ shops, pending, retrying, dead, ...totals }: Status["totals"]): string {
  return [
    `all ${counted(shops, "shop", "shops")} (\`sds status --all\`): ${pending} pending`,
    `${retrying} retrying`,
    `${dead} dead`,
    `inbox ${totals.inboxWaiting} waiting, ${totals.inboxFailed} failed`,
    `${totals.refusedShops} refused by the platform`,
    `oldest reconciliation ${totals.oldestReconciledAt ?? "never"}`,
  ].join(", ");
}

type Status = Awaited<ReturnType<typeof readStatus>>;
type Kept = Awaited<ReturnType<typeof keptStores>>;
type Service = Pick<Status, "shops" | "totals"> & {
  serving: boolean;
  engine: string;
  database: ReturnType<typeof databaseEntry>;
};

function print({ serving, engine, database, shops, totals }: Service, cluster: Status["cluster"], kept: Kept): void {
  const name = engine === "sqlite" ? "SQLite" : "PostgreSQL";
  printLine(`sds ${version} on ${name}: ${serving ? "serving" : "not serving"}`);
  printLine(databaseText(database));
  if (shops.length > 0)
    printTable(shops, {
      SHOP: ({ domain }) => domain,
      PENDING: ({ pending }) => String(pending),
      RETRYING: ({ retrying }) => String(retrying),
      DEAD: ({ dead }) => String(dead),
      "INBOX WAITING": ({ inboxWaiting }) => String(inboxWaiting),
      "INBOX FAILED": ({ inboxFailed }) => String(inboxFailed),
      RECONCILED: ({ reconciledAt }) => reconciledAt ?? "never",
    });
  if (shops.length < totals.shops) printLine(totalsText(totals));
  for (const { domain, trouble, troubleSince, warnings, uninstalledAt, load } of shops) {
    if (load !== null) printLine(`${domain}: ${load}`);
    if (uninstalledAt !== null) printLine(`${domain} uninstalled the app at ${uninstalledAt}`);
    if (trouble !== null) printLine(`${domain}: ${trouble}${troubleSince === null ? "" : `; since ${troubleSince}`}`);
    for (const { text, since } of warnings) printLine(`${domain}: ${text}; since ${since}`);
  }
  if (kept.length > 0) {
    const bytes = kept.reduce((sum, each) => sum + each.bytes, 0);
    printLine(`${counted(kept.length, "old database holds", "old databases hold")} ${bytesText(bytes)}:`);
    for (const { file } of kept) printLine(printable(`  ${file}`));
  }
  if (cluster === null) return;
  printTable(cluster.nodes, {
    NODE: ({ id }) => id,
    ADDRESS: ({ address }) => address,
    HOST: ({ host }) => host ?? "unknown",
    PROCESS: ({ process }) => String(process ?? "unknown"),
    VERSION: (node) => node.version,
    STARTED: ({ startedAt }) => startedAt,
    "LAST SEEN": ({ heartbeatAt }) => heartbeatAt,
    ALIVE: ({ alive }) => String(alive),
    SHOPS: ({ shops: count }) => String(count),
  });
  const times = counted(cluster.handOvers, "time", "times");
  printLine(`The shops are divided into ${PARTITIONS} partitions, which were handed over ${times}.`);
}
