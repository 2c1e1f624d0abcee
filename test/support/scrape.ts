import { existsSync } from "node:fs";
import type { App } from "../../src/compose/app.ts";

/** The path of promtool: Debian's path, unless a developer names another path. */
const PROMTOOL = process.env["SDS_TEST_PROMTOOL"] ?? "/usr/bin/promtool";

/**
 * Runs promtool.
 * @returns stderr of a successful check, or the exit status and the whole output of any other run; undefined if
 *   promtool is not installed
 */
export async function promtool(args: readonly string[], input = "", cwd = "/"): Promise<string | undefined> {
  if (!existsSync(PROMTOOL)) return undefined;
  const child = Bun.spawn([PROMTOOL, ...args], { stdin: Buffer.from(input), stdout: "pipe", stderr: "pipe", cwd });
  const [out, err, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return status === 0 && args[0] === "check" ? err : `${status} ${out}${err}`;
}

/** The metrics of an app that listens. */
export interface Scraped {
  text: string;
  /** The value of a series, written as `name{label="value"}`; undefined without the series. */
  value(series: string): number | undefined;
  names: string[];
}

export async function scrape(app: Pick<App, "metricsUrl">): Promise<Scraped> {
  return scraped(await (await fetch(app.metricsUrl() ?? "")).text());
}

function scraped(text: string): Scraped {
  const values = new Map<string, number>();
  for (const [, series = "", value] of text.matchAll(/^([a-z]\S*(?:\{.*\})?) (\S+)$/gm))
    values.set(series, Number(value));
  const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = ""]) => name);
  return { text, value: (series) => values.get(series), names };
}
