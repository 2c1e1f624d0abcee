import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ASKED_SCOPES } from "../../../src/domain/connection.ts";
import { appFiles } from "../../../src/shopify/install/app-files.ts";

interface AppFile {
  access_scopes: { scopes: string };
  webhooks: { subscriptions: { topics?: string[]; compliance_topics?: string[] }[] };
}

/** What the platform asks for each topic, from its own documentation. Any one of the scopes is enough. */
const TOPIC_SCOPES = JSON.parse(
  readFileSync(join(import.meta.dir, "../../support/platform-webhooks/index.json"), "utf8"),
) as Record<string, { access_scopes: string[] | null }>;

function appFile(without: string[]): { scopes: string[]; topics: string[] } {
  const text = appFiles("https://sds.example.com", "client", without)["shopify.app.toml"] ?? "";
  const file = Bun.TOML.parse(text) as AppFile;
  return {
    scopes: file.access_scopes.scopes.split(","),
    topics: file.webhooks.subscriptions.flatMap(({ topics = [], compliance_topics = [] }) => [
      ...topics,
      ...compliance_topics,
    ]),
  };
}

describe("the file for the platform", () => {
  test.each([[[]], ...ASKED_SCOPES.map((scope) => [[scope]]), [["read_products", "read_customer_merge"]]])(
    "asks for the scope of each topic, without %j",
    (without) => {
      const { scopes, topics } = appFile(without);
      expect(scopes).toEqual(ASKED_SCOPES.filter((scope) => !without.includes(scope)));
      for (const topic of topics) {
        const access = TOPIC_SCOPES[topic]?.access_scopes;
        expect(access, `the platform has no topic ${topic}`).not.toBeUndefined();
        const isAllowed = access === null || access?.some((scope) => scopes.includes(`read_${scope}`));
        expect(isAllowed, `${topic} needs ${access}`).toBe(true);
      }
    },
  );

  test("leaves out a topic only with its scope", () => {
    const { topics } = appFile([]);
    expect(topics).toContain("app/scopes_update");
    const left = topics.filter((topic) => !appFile(["read_customer_merge"]).topics.includes(topic));
    expect(left).toEqual(["customers/merge"]);
    expect(appFile(["read_all_orders"]).topics).toEqual(topics);
  });
});
