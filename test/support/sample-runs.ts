import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiShop } from "./api-shop.ts";
import { temporaryFolder } from "./app.ts";
import { runIn } from "./client-project.ts";
import { PROGRAM } from "./program.ts";
import { order } from "./records.ts";
import { programNamed } from "./samples.ts";

/** 100 orders for each of three subscriptions, which is more than one page. */
export const ORDERS = [1, 2, 3].flatMap((n) =>
  [...Array(100).keys()].map((cycle) => order(n, cycle + 1, { billedAt: at(cycle) })),
);

function at(cycle: number): string {
  return new Date(Date.UTC(2026, 0, 1) + cycle * 86_400_000).toISOString();
}

export interface Runtime {
  name: string;
  suffix: "mjs" | "py";
  command: string;
}

/** Copies one of the documentation's programs into the test's folder. @returns the command that runs the program */
export type Install = (runtime: Runtime, name: string) => string[];

/** How to run the documentation's programs in each language. */
export const RUNTIMES: Runtime[] = [
  { name: "JavaScript under Bun", suffix: "mjs", command: process.execPath },
  { name: "JavaScript under Node", suffix: "mjs", command: "node" },
  { name: "Python", suffix: "py", command: "python3" },
];

/** Serves a shop with 300 orders. Also returns its key, and a folder in which the documentation's programs run. */
export async function served() {
  const { program, server, key } = await apiShop(3, ORDERS);
  const { url } = server;
  const folder = join(temporaryFolder(), "samples");
  mkdirSync(folder);
  // The documentation calls the program `sds`.
  writeFileSync(join(folder, "sds"), `#!/bin/sh\nexec ${PROGRAM.join(" ")} "$@"\n`);
  chmodSync(join(folder, "sds"), 0o700);
  const env: Record<string, string> = {
    ...(await program.environment({ API_URL: url, API_KEY: key, KEY: key })),
    PATH: `${folder}:${process.env["PATH"]}`,
  };
  const run = (command: string[], more: Record<string, string> = {}) => runIn(folder, command, { ...env, ...more });
  const install: Install = ({ suffix, command }, name) => {
    const file = `${name}.${suffix}`;
    const stored = join(folder, file);
    writeFileSync(stored, programNamed(file));
    return [command, stored];
  };
  /** Runs shell code of the documentation, with the address of this server. */
  const shell = (code: string, more: Record<string, string> = {}) =>
    run(["sh", "-c", code.replaceAll("http://127.0.0.1:8080", url)], more);
  return { program, url, key, folder, env, run, install, shell };
}
