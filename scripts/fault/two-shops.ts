import {
  addBigShop,
  fileHas,
  inFolder,
  platformSecretEnv,
  rowsOfShop,
  shopRow,
} from "../../test/support/removed-shop.ts";
import { compiledProgram } from "./program.ts";

/** The removed shop. Its customers are called Lovelace, and the other shop's customers Hopper. */
export const REMOVED = "alpha.myshopify.com";
const OTHER = "beta.myshopify.com";
const OTHER_ROWS = 20;
const POLL_MS = 20;
const TIMEOUT_MS = 60_000;

/** A data folder with two shops. Removals run in copies of this folder. */
export interface TwoShops {
  /** The id of the shop that is removed. */
  removed: number;
  /** @throws Error if a copy still has data of the removed shop, or has changed the other shop */
  checkRemoved(data: string): Promise<void>;
}

/** Returns the environment of the program. @param folder where the file with the platform's client secret is written */
export function removalEnv(folder: string): Record<string, string> {
  return { ...platformSecretEnv(folder), SDS_LOG: "error" };
}

/** Makes the two shops. @param rows number of records of the removed shop */
export async function makeTwoShops(data: string, env: Record<string, string>, rows: number): Promise<TwoShops> {
  const program = compiledProgram(data, env);
  const run = (args: string[], stdin?: string) => program.run(args, stdin);
  await addBigShop(run, REMOVED, "Lovelace", rows);
  await addBigShop(run, OTHER, "Hopper", OTHER_ROWS);
  const idOf = async (domain: string) => Number((await shopRow(inFolder(data), domain))?.["id"]);
  const [removed, other] = [await idOf(REMOVED), await idOf(OTHER)];
  if (Number.isNaN(removed + other)) throw new Error("the shops were not added");
  const untouched = JSON.stringify(await rowsOfShop(inFolder(data), other));
  return {
    removed,
    async checkRemoved(copy) {
      const left = await rowsOfShop(inFolder(copy), removed);
      if (Object.keys(left).length > 0) throw new Error(`rows were left: ${JSON.stringify(left)}`);
      if (fileHas(copy, "Lovelace")) throw new Error("a text was left in the file");
      if (JSON.stringify(await rowsOfShop(inFolder(copy), other)) !== untouched)
        throw new Error("the other shop changed");
      if (!fileHas(copy, "Hopper")) throw new Error("the search in the file does not work");
    },
  };
}

/** Waits until the shop is gone. @throws Error if that takes longer than a minute */
export function untilRemoved(data: string): Promise<void> {
  return until(async () => (await shopRow(inFolder(data), REMOVED)) === undefined, "the shop is removed");
}

/** Waits until a condition is met. @throws Error after a minute */
export async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`it did not happen in time: ${what}`);
    await Bun.sleep(POLL_MS);
  }
}
