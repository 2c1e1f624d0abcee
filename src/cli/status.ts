import type { Command } from "commander";
import { version } from "../../package.json";
import { type ServiceStatus, type ShopWork, serviceStatus } from "../actions/status.ts";
import { SdsError } from "../domain/error.ts";
import { PARTITIONS } from "../domain/partition.ts";
import { counted } from "../lib/text.ts";
import { isoUtc } from "../lib/time.ts";
import { configOf, withStore } from "./context.ts";
import { example, JSON_OPTION } from "./options.ts";
import { printJson, printLine, printTable } from "./print.ts";

export function addStatusCommand(program: Command): void {
  program
    .command("status")
    .description(
      "show whether `sds serve` runs, and what waits or failed in each shop; exit status 1 if it does not run",
    )
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds status"))
    .action(async ({ json }: { json?: boolean }, command: Command) => {
      const status = await withStore(command, (store) => serviceStatus({ store, fetch }));
      const engine = configOf(command).database === null ? "sqlite" : "postgres";
      if (json) printJson(jsonOf(status, engine));
      else print(status, engine);
      if (status.reason !== null) throw new SdsError("failed", `not serving: ${status.reason}`);
    });
}

function jsonOf({ reason, shops, cluster }: ServiceStatus, engine: string) {
  return {
    serving: reason === null,
    version,
    engine,
    shops: shops.map(shopEntry),
    ...(cluster !== null && { nodes: cluster.nodes.map(nodeEntry), handOvers: cluster.handOvers }),
  };
}

function print({ reason, shops, cluster }: ServiceStatus, engine: string): void {
  const name = engine === "sqlite" ? "SQLite" : "PostgreSQL";
  printLine(`sds ${version} on ${name}: ${reason === null ? "serving" : "not serving"}`);
  if (shops.length > 0)
    printTable(
      ["SHOP", "PENDING", "RETRYING", "DEAD", "INBOX WAITING", "INBOX FAILED", "RECONCILED"],
      shops.map((shop) => Object.values(shopEntry(shop)).map((value) => String(value ?? "never"))),
    );
  if (cluster === null) return;
  printTable(
    ["NODE", "ADDRESS", "HOST", "PROCESS", "VERSION", "STARTED", "LAST SEEN", "ALIVE", "SHOPS"],
    cluster.nodes.map((node) => Object.values(nodeEntry(node)).map((value) => String(value ?? "unknown"))),
  );
  const times = counted(cluster.handOvers, "time", "times");
  printLine(`The shops are divided into ${PARTITIONS} partitions, which were handed over ${times}.`);
}

function shopEntry({ reconciledAt, ...shop }: ShopWork) {
  return { ...shop, reconciledAt: reconciledAt === null ? null : isoUtc(reconciledAt) };
}

type Node = NonNullable<ServiceStatus["cluster"]>["nodes"][number];

function nodeEntry({
  id,
  address,
  host,
  processId,
  version: nodeVersion,
  startedAt,
  heartbeatAt,
  isAlive,
  shops,
}: Node) {
  return {
    id,
    address,
    host,
    process: processId,
    version: nodeVersion,
    startedAt: isoUtc(startedAt),
    heartbeatAt: isoUtc(heartbeatAt),
    alive: isAlive,
    shops,
  };
}
