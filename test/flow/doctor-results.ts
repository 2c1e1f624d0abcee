import { expect } from "bun:test";
import { existsSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Program } from "../support/program.ts";

/** Any free port. Otherwise the doctor would report another program that uses the default port. */
export const PORT = { SDS_PORT: "0" };

interface Result {
  check: string;
  ok: boolean;
  detail: string;
  remedy: string | null;
}

/**
 * The names, sizes, times, modes and owners of a folder and its files. While `serve` runs, leaves out the sizes and
 * times of the database's files, because `serve` shortens the write-ahead log each minute.
 */
function listing(folder: string, isServed: boolean): string[] {
  if (!existsSync(folder)) return [];
  return [".", ...readdirSync(folder).toSorted()].map((name) => {
    const { size, mtimeMs, mode, uid, ino } = lstatSync(join(folder, name));
    const mayChange = isServed && name.startsWith("sds.db");
    return [name, mode, uid, ino, ...(mayChange ? [] : [size, mtimeMs])].join(" ");
  });
}

/**
 * Runs the doctor, and checks that it changes nothing.
 * @param isServed whether `serve` runs on the folder
 * @returns the failures, by their checks
 */
export async function failuresOf(
  program: Program,
  env: Record<string, string> = {},
  isServed = false,
): Promise<Record<string, Result>> {
  const before = listing(program.data, isServed);
  const began = performance.now();
  const { status, stdout, stderr } = await program.run(["doctor", "--json"], { env: { ...PORT, ...env } });
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(listing(program.data, isServed)).toEqual(before);
  const results = JSON.parse(stdout) as Result[];
  const failed = results.filter(({ ok }) => !ok);
  expect(status).toBe(failed.length === 0 ? 0 : 1);
  expect(stderr).toBe(failed.length === 0 ? "" : `sds: ${failed.length} of ${results.length} checks failed\n`);
  expect(results.filter(({ ok, remedy }) => ok !== (remedy === null))).toEqual([]);
  return Object.fromEntries(failed.map((result) => [result.check, result]));
}

/** Runs the doctor on one fault. @returns its detail and its remedy */
export async function onlyFault(
  check: string,
  program: Program,
  env?: Record<string, string>,
  isServed?: boolean,
): Promise<string> {
  const failures = await failuresOf(program, env, isServed);
  expect(Object.keys(failures)).toEqual([check]);
  return `${failures[check]?.detail} | ${failures[check]?.remedy}`;
}
