import { parseArgs } from "node:util";
import fc from "fast-check";
import { scopeStylesheet } from "../../src/domain/style/stylesheet.ts";
import { arbitraryStyle } from "../../test/support/arbitrary-styles.ts";
import { HOSTILE_STYLES } from "../../test/support/hostile-styles.ts";
import { launchChromium } from "../../test/support/settings-page.ts";
import { openStyleProbe, type StyleProbe } from "../../test/support/style-probe.ts";

const { values } = parseArgs({ options: { styles: { type: "string" }, seed: { type: "string" } } });
const STYLES = Number(values.styles ?? 2_000);
const SEED = Number(values.seed ?? Date.now() % 1_000_000);
/** The browser's requests are checked after each group of styles. */
const GROUP_SIZE = 50;

interface StyleTally {
  refused: number;
  accepted: number;
  slowestMs: number;
  findings: string[];
}

async function tryStyle(source: string, probe: StyleProbe, tally: StyleTally): Promise<void> {
  const startedAt = performance.now();
  const result = scopeStylesheet(source);
  tally.slowestMs = Math.max(tally.slowestMs, performance.now() - startedAt);
  if ("refused" in result) {
    tally.refused++;
    return;
  }
  tally.accepted++;
  const harm = await probe.harmBy(result.css);
  if (harm.length > 0) tally.findings.push(`${JSON.stringify(source)} -> ${result.css}\n  ${harm.join("\n  ")}`);
}

async function tryStyles(styles: readonly string[], probe: StyleProbe): Promise<StyleTally> {
  const tally: StyleTally = { refused: 0, accepted: 0, slowestMs: 0, findings: [] };
  for (let index = 0; index < styles.length; index += GROUP_SIZE) {
    const group = styles.slice(index, index + GROUP_SIZE);
    for (const source of group) await tryStyle(source, probe, tally);
    const requests = await probe.takeRequests();
    if (requests.length > 0)
      tally.findings.push(
        `${requests.join(" ")} asked by one of:\n  ${group.map((each) => JSON.stringify(each)).join("\n  ")}`,
      );
  }
  return tally;
}

const browser = await launchChromium();
const probe = await openStyleProbe(await browser.newContext({ viewport: { width: 800, height: 900 } }));
const findings: string[] = [];
for (const [name, styles] of [
  ["hostile", HOSTILE_STYLES],
  ["fuzzed", fc.sample(arbitraryStyle, { numRuns: STYLES, seed: SEED })],
] as const) {
  const tally = await tryStyles(styles, probe);
  findings.push(...tally.findings);
  const { refused, accepted, slowestMs } = tally;
  process.stdout.write(
    `${styles.length} ${name} styles: ${refused} refused, ${accepted} applied; the slowest took ${slowestMs.toFixed(1)} ms\n`,
  );
}
await browser.close();
process.stdout.write(`seed ${SEED}: ${findings.length} findings\n${findings.map((each) => `${each}\n`).join("")}`);
process.exitCode = findings.length === 0 ? 0 : 1;
