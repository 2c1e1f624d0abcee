import { parseArgs } from "node:util";
import { cleanUp } from "../../test/support/cleanup.ts";
import { Life } from "./convergence/life.ts";
import { SWITCHES, type Switch } from "./convergence/switches.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    seed: { type: "string" },
    rounds: { type: "string" },
    only: { type: "string" },
    log: { type: "boolean" },
  },
});
const MINUTES = Number(values.minutes ?? 60);
const ALONE_MINUTES = Math.min(MINUTES, 10);
const FIRST_SEED = Number(values.seed ?? Date.now() % 1_000_000);
const ROUNDS = Number(values.rounds ?? 1);
const MOST_PRINTED = 8;

let lived = 0;
let failed = 0;

async function live(seed: number, name: string, switches: readonly Switch[], minutes: number): Promise<void> {
  const startedAt = performance.now();
  try {
    const life = await Life.begin(seed, switches);
    const findings = await life.run(minutes);
    lived += minutes;
    const { steps, webhooks, restarts } = life.counts;
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    const result = findings.length === 0 ? "equal" : `${findings.length} findings`;
    process.stdout.write(
      `seed ${seed}, ${name}: ${minutes} minutes, ${steps} steps, ${webhooks} webhooks, ` +
        `${life.platform.requests.length} requests, ${restarts} restarts, in ${seconds} s: ${result}\n`,
    );
    for (const finding of findings.slice(0, MOST_PRINTED)) process.stdout.write(`  ${finding}\n`);
    if (findings.length > 0) failed += 1;
    if (values.log === true) await Bun.write("/tmp/platform.log", life.logged.join("\n"));
  } catch (thrown) {
    process.stdout.write(`seed ${seed}, ${name}: ${thrown instanceof Error ? thrown.stack : thrown}\n`);
    failed += 1;
  } finally {
    await cleanUp();
  }
}

for (let seed = FIRST_SEED; seed < FIRST_SEED + ROUNDS; seed += 1) {
  const alone = SWITCHES.filter(({ name }) => values.only === undefined || name === values.only);
  for (const each of alone) await live(seed, each.name, [each], ALONE_MINUTES);
  if (values.only === undefined || values.only === "all") await live(seed, "all together", SWITCHES, MINUTES);
}
process.stdout.write(`${(lived / 60).toFixed(1)} hours of the platform's time, ${failed} lives with findings\n`);
process.exitCode = failed === 0 ? 0 : 1;
