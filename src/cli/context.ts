import { hostname } from "node:os";
import type { Command } from "commander";
import { type Config, readConfig } from "../config.ts";
import { type Actor, COMMAND_LINE } from "../domain/audit.ts";
import { invalid, SdsError } from "../domain/error.ts";
import { parseDomain, type Shop } from "../domain/shop.ts";
import { didYouMean } from "../lib/similar.ts";
import { currentUser } from "../lib/users.ts";
import { openStore } from "../store/open-store.ts";
import type { Store } from "../store/port/store.ts";
import { randomBytes, sleep } from "./dependencies.ts";
import { tell, warn } from "./print.ts";
import { secretFiles } from "./secret-files.ts";

/**
 * How long a command waits for a database lock. The wait and the commit together must take less than SPAN_MS (30 s).
 * Otherwise readers would miss changes.
 */
const BUSY_TIMEOUT_MS = 25_000;

/** Who runs a command, for the audit list: the user of this machine. */
export function operator(): Actor {
  return { ...COMMAND_LINE, from: `${currentUser()}@${hostname()}` };
}

/** The configuration from `--data`, the command's own options and the environment. */
export function configOf(command: Command): Config {
  return readConfig(command.optsWithGlobals(), process.env);
}

/** The configuration for a command on files of the data folder. @throws SdsError `invalid` for a database server */
export function configOfFolder(command: Command): Config {
  const config = configOf(command);
  if (config.database === null) return config;
  throw invalid(
    "SDS_DATABASE_URL names a PostgreSQL server: back it up and restore it with its own tools, such as pg_dump " +
      "(docs/scaling.md, Backup)",
  );
}

/** How long a command waits while another program upgrades a PostgreSQL database. */
const UPGRADE_WAIT_MS = 5_000;
/** A command reports an upgrade only after this time, because most upgrades have ended by then. */
const QUIET_UPGRADE_MS = 3_000;
const onUpgradeStep = (text: string) => {
  if (performance.now() > QUIET_UPGRADE_MS) tell(`sds: upgrade: ${text}`);
};

/** Commands that create a missing data folder. For other commands, a new folder would hide a wrong --data. */
const MAKES_DATA = ["shop add", "shop connect", "import"];

/** Opens the store for one command, and closes it afterwards. @throws SdsError `not_found` for a folder without data */
export function withStore<T>(command: Command, run: (store: Store) => Promise<T>): Promise<T> {
  return withStoreOf(configOf(command), !MAKES_DATA.includes(nameOf(command)), run);
}

/** Opens the store of a configuration for one command, and closes it afterwards. */
export async function withStoreOf<T>(
  config: Config,
  mustExist: boolean,
  run: (store: Store) => Promise<T>,
): Promise<T> {
  const { data, masterKeyFile, database, upgradeCopy } = config;
  const store = await openStore({
    folder: data,
    masterKeyFile,
    busyTimeoutMs: BUSY_TIMEOUT_MS,
    now: Date.now,
    random: randomBytes,
    mustExist,
    upgradeAlone: true,
    upgradeCopy,
    server: database === null ? null : { ...database, sleep, onUpgradeStep, upgradeWaitMs: UPGRADE_WAIT_MS },
  });
  try {
    warn(secretFiles(config));
    return await run(store);
  } finally {
    await store.close();
  }
}

/** Returns a command's name without the program's name, such as `shop add`. */
function nameOf(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${parent.name()} ${command.name()}`;
}

/**
 * Opens the store for a command on one shop: the named shop, else the shop that owns `id`, else the only shop.
 * @param id of an API key or a delivery, or the fingerprint of a key
 */
export async function withShop<T>(
  command: Command,
  run: (store: Store, shop: Shop) => Promise<T>,
  id?: string,
): Promise<T> {
  const named = command.opts<{ shop?: string }>().shop ?? configOf(command).shop;
  return withStore(command, async (store) => {
    const owner = named !== null || id === undefined ? undefined : await store.shops.owning(id);
    return run(store, owner ?? (await chooseShop(store, named)));
  });
}

/** @throws SdsError `not_found` */
export async function findShop(store: Store, domain: string): Promise<Shop> {
  const shop = await store.shops.find(parseDomain(domain));
  if (shop !== undefined) return shop;
  const domains = (await store.shops.list()).map((each) => each.domain);
  throw new SdsError("not_found", `there is no shop ${domain}${didYouMean(domain, domains)}`);
}

/** Finds the named shop; without a name, the only shop. @throws SdsError `not_found`; `invalid` for several shops */
export async function chooseShop(store: Store, domain: string | null): Promise<Shop> {
  if (domain !== null) return findShop(store, domain);
  const [shop, ...others] = await store.shops.list();
  if (shop === undefined)
    throw new SdsError("not_found", "there is no shop yet: add one with `sds shop add alpha.myshopify.com`");
  if (others.length > 0)
    throw invalid(`there are ${others.length + 1} shops: say which with --shop, for instance --shop ${shop.domain}`);
  return shop;
}
