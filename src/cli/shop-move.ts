import { join } from "node:path";
import type { Command } from "commander";
import { finishRemoval } from "../actions/shop-removal.ts";
import { type Config, readAddressFile, readCopyTarget } from "../config.ts";
import { invalid } from "../domain/error.ts";
import { parseDomain } from "../domain/shop.ts";
import { counted } from "../lib/text.ts";
import { abandonMove, cancelMove, type MoveRequest, moveShop } from "../store/copy/move-shop.ts";
import { WrongMasterKey } from "../store/files/master-key.ts";
import type { Store } from "../store/port/store.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, findShop, operator, withStore, withStoreOf } from "./context.ts";
import { randomBytes, sleep } from "./dependencies.ts";
import { printJson, tell, warn } from "./print.ts";
import { createProgressBar } from "./progress-bar.ts";
import { secretFileWarnings } from "./secret-files.ts";

type MoveFlags = JsonFlag & {
  to?: string;
  toFile?: string;
  toKeyFile?: string;
  cancel?: boolean;
  cancelLost?: boolean;
};

export function addMoveCommand(shop: SdsCommand): void {
  shop
    .command("move <domain>")
    .description("move a shop with everything it has to another database, while both are served")
    .option("--to <url>", "postgres://USER@HOST/DATABASE, or sqlite:FOLDER")
    .option("--to-file <file>", "the same, read from a file: for an address with a password")
    .option("--to-key-file <file>", "the other database's master key, if it differs")
    .option("--cancel", "give up a move that did not end: the shop stays here")
    .option("--cancel-lost", "give up a move whose other database is lost for good")
    .jsonOption()
    .examples(
      "sds shop move alpha.myshopify.com --to-file /etc/sds/cell-2-url",
      "sds shop move alpha.myshopify.com --to sqlite:/var/lib/sds-2",
    )
    .action(move);
}

async function move(text: string, flags: MoveFlags, command: Command): Promise<void> {
  const { json, cancel = false, cancelLost = false, ...target } = flags;
  const domain = parseDomain(text);
  const report: typeof tell = json ? () => undefined : tell;
  if (cancelLost) {
    if (cancel || target.to !== undefined || target.toFile !== undefined)
      throw invalid("use --cancel-lost without --to and --cancel");
    await abandonHere(command, domain, report);
    if (json) printJson({ domain });
    return;
  }
  const there = targetOf(target, configOf(command));
  warn(secretFileWarnings(target.toFile));
  warn(secretFileWarnings(target.toKeyFile));
  const run = cancel ? cancelThere : moveThere;
  await withStore(command, (source) =>
    withStoreOf(there, true, (target) => run(source, target, domain, report)).catch((thrown: unknown) => {
      if (!(thrown instanceof WrongMasterKey)) throw thrown;
      throw invalid(`${there.masterKeyFile} is not the master key of the other database: name that with --to-key-file`);
    }),
  );
  if (json) printJson({ domain });
}

/** Returns the configuration with the other database in place of our own. @throws SdsError `invalid` */
function targetOf({ to, toFile, toKeyFile }: Omit<MoveFlags, "json">, config: Config): Config {
  if ((to === undefined) === (toFile === undefined)) throw invalid("say where to move it: --to URL or --to-file FILE");
  const address = toFile === undefined ? (to ?? "").trim() : readAddressFile("--to-file", toFile);
  const target = readCopyTarget(address, process.env);
  if ("folder" in target) {
    const { folder } = target;
    return { ...config, data: folder, database: null, masterKeyFile: toKeyFile ?? join(folder, "master.key") };
  }
  return { ...config, database: { ...target, readUrl: null }, masterKeyFile: toKeyFile ?? config.masterKeyFile };
}

async function moveThere(source: Store, target: Store, domain: string, report: typeof tell): Promise<void> {
  const progress = createProgressBar(process.stderr);
  let stoppedAt: number | undefined;
  const request = {
    ...requestFor(source, domain),
    target,
    onRows: (rows: number) => progress.update(undefined, counted(rows, "row", "rows")),
    onStop() {
      stoppedAt = performance.now();
    },
  };
  const isMoved = await moveShop(request).finally(() => progress.end());
  // Other commands accept the first domain of a renamed shop, but a move needs the present domain.
  if (!isMoved) throw invalid(`the shop has another domain now: name it ${(await findShop(source, domain)).domain}`);
  const waitedMs = stoppedAt === undefined ? undefined : performance.now() - stoppedAt;
  const waited = waitedMs === undefined ? "" : ` Its posts and deliveries waited ${(waitedMs / 1000).toFixed(1)} s.`;
  report(`Moved ${domain}.${waited}`);
  report("Send its readers, its posts and its platform webhooks to the service of the other database now.");
  await removeRest(source, domain, report);
}

async function cancelThere(source: Store, target: Store, domain: string, report: typeof tell): Promise<void> {
  if (!(await cancelMove({ ...requestFor(source, domain), target }))) {
    await findShop(source, domain);
    throw invalid(`no move of ${domain} has begun: there is nothing to cancel`);
  }
  report(`The move of ${domain} is given up. The shop is served here.`);
  await removeRest(target, domain, report);
}

/** Gives up a move whose other database is lost, without access to that database. */
async function abandonHere(command: Command, domain: string, report: typeof tell): Promise<void> {
  await withStore(command, async (here) => {
    if (!(await abandonMove(requestFor(here, domain))))
      throw invalid(`no move of ${domain} has begun: there is nothing to give up`);
    report(`The move of ${domain} is given up.`);
    await removeRest(here, domain, report);
  });
}

/** Removes the rows of a shop that a finished, cancelled or killed move has left in this database. */
async function removeRest({ shops }: Store, domain: string, report: typeof tell): Promise<void> {
  const rest = (await shops.removing()).find((shop) => shop.domain === domain);
  if (rest === undefined) return;
  report("Removing the copy that is left. A running `serve` does this too, so the command may be ended.");
  await finishRemoval(shops, rest, sleep);
}

function requestFor(source: Store, domain: string): Omit<MoveRequest, "target"> {
  const silent = () => undefined;
  const now = Date.now;
  return { source, domain, actor: operator(), now, random: randomBytes, sleep, onRows: silent, onStop: silent };
}
