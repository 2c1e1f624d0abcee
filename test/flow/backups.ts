import { readdirSync } from "node:fs";
import { join } from "node:path";
import { backupStore, openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { randomBytes, START, temporaryFolder } from "../support/app.ts";
import { UPGRADE } from "../support/open-store.ts";
import { Program } from "../support/program.ts";

export const ALPHA = "alpha.myshopify.com";
export const BETA = "beta.myshopify.com";

export interface Backup {
  program: Program;
  /** A folder outside the data folder. */
  folder: string;
  /** A copy made when the database had only ALPHA. */
  copy: string;
}

/**
 * Makes a program whose data has changed since its backup: BETA was added. Uses the store directly, because commands
 * would take longer.
 */
export async function changedSinceBackup(): Promise<Backup> {
  const program = new Program();
  const folder = temporaryFolder();
  const copy = join(folder, "copy.db");
  await addShop(program, ALPHA);
  await backupStore({ folder: program.data, file: copy, masterKeyFile: "", random: randomBytes, now: Date.now() });
  await addShop(program, BETA);
  return { program, folder, copy };
}

export function openData({ data: folder }: Program): Promise<Store> {
  return openStore({ folder, masterKeyFile: join(folder, "master.key"), busyTimeoutMs: 30_000, ...UPGRADE });
}

export async function addShop(program: Program, domain: string): Promise<void> {
  const store = await openData(program);
  await store.shops.add({ domain, plan: "pro", currency: "USD" }, START);
  await store.close();
}

export async function shops(program: Program): Promise<string[]> {
  const store = await openData(program);
  const found = await store.shops.list();
  await store.close();
  return found.map(({ domain }) => domain);
}

/** The names of the old databases that restores kept, without their logs. */
export function keptIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => /^sds\.db\.before-restore-\d{4}-\d\d-\d\dT\d{6}Z$/.test(name));
}
