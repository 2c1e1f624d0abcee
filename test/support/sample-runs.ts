import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiShop } from "./api-shop.ts";
import { temporaryFolder } from "./app.ts";
import { runIn } from "./client-project.ts";
import { PROGRAM } from "./program.ts";
import { order } from "./records.ts";
import { programNamed, withoutTypes } from "./samples.ts";

/** The orders of the shop's three subscriptions: more than one page. */
export const ORDERS = [1, 2, 3].flatMap((n) =>
  [...Array(100).keys()].map((cycle) => order(n, cycle + 1, { billedAt: at(cycle) })),
);

function at(cycle: number): string {
  return new Date(Date.UTC(2026, 0, 1) + cycle * 86_400_000).toISOString();
}

export interface Runtime {
  name: string;
  suffix: "mts" | "py";
  command: string;
  prepare: (code: string) => string;
}

/** Puts a program of the pages into the folder. @returns the command that runs it */
export type Install = (runtime: Runtime, name: string) => string[];

/** The command for each language in the pages. Node 20 runs TypeScript after its types are removed. */
export const RUNTIMES: Runtime[] = [
  { name: "TypeScript under Bun", suffix: "mts", command: process.execPath, prepare: (code) => code },
  { name: "TypeScript under Node", suffix: "mts", command: "node", prepare: withoutTypes },
  { name: "Python", suffix: "py", command: "python3", prepare: (code) => code },
];

/** A served shop with 300 orders, its key, and a folder from which the programs of the pages run. */
export async function served() {
  const { program, server, key } = await apiShop(3, ORDERS);
  const { url } = server;
  const folder = join(temporaryFolder(), "samples");
  mkdirSync(folder);
  // The pages call the program `sds`.
  writeFileSync(join(folder, "sds"), `#!/bin/sh\nexec ${PROGRAM.join(" ")} "$@"\n`);
  chmodSync(join(folder, "sds"), 0o700);
  const env: Record<string, string> = {
    ...(await program.environment({ API_URL: url, API_KEY: key, KEY: key })),
    PATH: `${folder}:${process.env["PATH"]}`,
  };
  const run = (command: string[], more: Record<string, string> = {}) => runIn(folder, command, { ...env, ...more });
  const install: Install = ({ suffix, command, prepare }, name) => {
    const file = `${name}.${suffix}`;
    const stored = join(folder, command === "node" ? `${name}.mjs` : file);
    writeFileSync(stored, prepare(programNamed(file)));
    return [command, stored];
  };
  /** Runs shell code of the pages. Pages that have an address have this one. */
  const shell = (code: string, more: Record<string, string> = {}) =>
    run(["sh", "-c", code.replaceAll("http://127.0.0.1:8080", url)], more);
  return { program, url, key, folder, env, run, install, shell };
}
