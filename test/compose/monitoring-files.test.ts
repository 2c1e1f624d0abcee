import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createMetrics } from "../../src/compose/metrics.ts";
import { promtool } from "../support/scrape.ts";

const DOCS = join(import.meta.dir, "../../src/docs");
const read = (name: string) => Bun.file(join(DOCS, name)).text();
const FILES = ["alerts.yaml", "alerts.test.yaml", "dashboard.json"];

interface Rule {
  alert: string;
  labels: { severity: string };
  annotations: { summary: string; action: string };
}

const { groups } = Bun.YAML.parse(await read("alerts.yaml")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

/** The names of a program's metrics. A histogram has four names: its own name, and its name with three suffixes. */
async function metricNames(): Promise<Set<string>> {
  const metrics = createMetrics({
    ...{ version: "1", engine: "sqlite", isReady: () => true, fewestPoints: () => 1, now: () => 0 },
    figures: () => undefined,
  });
  const types = [...(await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Set(
    types.flatMap(([, name = "", type]) =>
      type === "histogram" ? ["", "_bucket", "_sum", "_count"].map((suffix) => name + suffix) : [name],
    ),
  );
}

function namesIn(text: string): string[] {
  return [...new Set(text.match(/\bsds_[a-z_]+/g))];
}

test.each(FILES)("%s names only metrics that exist", async (file) => {
  const known = await metricNames();
  const names = namesIn(await read(file));
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});

test("the table in operating.md has every metric, and no other", async () => {
  const [, section = ""] = (await read("operating.md")).split("\n## Metrics\n");
  const [table = ""] = section.split("\n## ");
  const bare = [...(await metricNames())].filter((name) => !/_(bucket|sum|count)$/.test(name));
  expect(namesIn(table).sort()).toEqual(bare.sort());
});

describe("alerts.yaml", () => {
  test("has a summary, what to do, and a severity in each alert", () => {
    expect(rules.length).toBeGreaterThanOrEqual(8);
    for (const { alert, labels, annotations } of rules) {
      expect(alert).toStartWith("Sds");
      expect(["page", "ticket"]).toContain(labels.severity);
      expect(annotations.summary).not.toBeEmpty();
      expect(annotations.action).not.toBeEmpty();
    }
  });

  test("has a test of each alert", async () => {
    const tests = await read("alerts.test.yaml");
    expect(rules.filter(({ alert }) => !tests.includes(`alertname="${alert}"`))).toEqual([]);
  });

  test("passes promtool", async () => {
    expect((await promtool(["check", "rules", "alerts.yaml"], "", DOCS)) ?? "SUCCESS").not.toContain("FAILED");
    expect((await promtool(["test", "rules", "alerts.test.yaml"], "", DOCS)) ?? "SUCCESS").toContain("SUCCESS");
  });
});

test("the dashboard asks for its data source, and every panel uses it", async () => {
  const { templating, panels } = JSON.parse(await read("dashboard.json"));
  expect(templating.list).toMatchObject([{ name: "datasource", type: "datasource", query: "prometheus" }]);
  const shown = panels.filter(({ type }: { type: string }) => type !== "row");
  for (const { datasource, targets } of shown)
    for (const source of [datasource, ...targets.map((target: { datasource: unknown }) => target.datasource)])
      expect(source).toEqual({ type: "prometheus", uid: ["$", "{datasource}"].join("") });
});
