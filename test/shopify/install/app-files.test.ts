import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { TRIGGER_HANDLES } from "../../../src/domain/events/trigger.ts";
import { ASKED_SCOPES, OPTIONAL_SCOPES } from "../../../src/domain/platform/connection.ts";
import { readWebhook } from "../../../src/shopify/inbox/payload.ts";
import { appFiles, appScopes } from "../../../src/shopify/install/app-files.ts";

interface AppFile {
  access_scopes: { scopes: string };
  webhooks: {
    subscriptions: { topics?: string[]; compliance_topics?: string[]; include_fields?: string[]; uri: string }[];
  };
}

/** The scopes that the platform's documentation requires for each topic. Any one of a topic's scopes is enough. */
const TOPIC_SCOPES = JSON.parse(
  readFileSync(join(import.meta.dir, "../../support/platform-webhooks/index.json"), "utf8"),
) as Record<string, { access_scopes: string[] | null }>;

function parsed(without: string[], optional: string[] = []): AppFile {
  const scopes = appScopes(without, optional);
  const { "shopify.app.toml": text = "" } = appFiles("https://sds.example.com", "client", scopes);
  return Bun.TOML.parse(text) as unknown as AppFile;
}

function appFile(without: string[], optional: string[] = []): { scopes: string[]; topics: string[] } {
  const file = parsed(without, optional);
  return {
    scopes: file.access_scopes.scopes.split(","),
    topics: file.webhooks.subscriptions.flatMap(({ topics = [], compliance_topics = [] }) => [
      ...topics,
      ...compliance_topics,
    ]),
  };
}

describe("the file for the platform", () => {
  test.each([[[]], ...ASKED_SCOPES.map((scope) => [[scope]]), [["read_products", "read_all_orders"]]])(
    "asks for the scope of each topic, without %j",
    (without) => {
      const { scopes, topics } = appFile(without, OPTIONAL_SCOPES);
      // Without read_orders, read_all_orders is useless.
      const left = without.includes("read_orders") ? [...without, "read_all_orders"] : without;
      expect(scopes).toEqual([...ASKED_SCOPES, ...OPTIONAL_SCOPES].filter((scope) => !left.includes(scope)));
      for (const topic of topics) {
        const access = TOPIC_SCOPES[topic]?.access_scopes;
        expect(access, `the platform has no topic ${topic}`).not.toBeUndefined();
        const isAllowed = access === null || access?.some((scope) => scopes.includes(`read_${scope}`));
        expect(isAllowed, `${topic} needs ${access}`).toBe(true);
      }
    },
  );

  test("asks for merges of customers only on request, and leaves out a topic only with its scope", () => {
    const { topics, scopes } = appFile([]);
    expect(topics).toContain("app/scopes_update");
    expect(scopes).toEqual(ASKED_SCOPES);
    const optional = appFile([], OPTIONAL_SCOPES);
    expect(optional.scopes).toEqual([...ASKED_SCOPES, "read_customer_merge"]);
    expect(optional.topics.filter((topic) => !topics.includes(topic))).toEqual(["customers/merge"]);
    expect(appFile(["read_all_orders"]).topics).toEqual(topics);
  });

  test("asks only for the order fields that are read, and for all fields of other objects", () => {
    const { subscriptions } = parsed([]).webhooks;
    const uri = "https://sds.example.com/platform/webhooks";
    expect(new Set(subscriptions.map((each) => each.uri))).toEqual(new Set([uri]));
    const limited = subscriptions.filter(({ include_fields }) => include_fields !== undefined);
    const topics = ["orders/create", "orders/paid", "orders/updated", "orders/cancelled"];
    expect(limited).toEqual([{ topics, include_fields: ["id", "admin_graphql_api_id", "updated_at"], uri }]);
    const all = subscriptions.flatMap((each) => each.topics ?? []);
    expect(all.filter((topic) => topic.startsWith("orders/"))).toEqual(topics);
    expect(new Set(all).size).toBe(all.length);
  });

  test.each(["create", "paid", "updated", "cancelled"])("names all fields that orders/%s is read from", (name) => {
    const topic = `orders/${name}`;
    const sample = readFileSync(join(import.meta.dir, `../../support/platform-webhooks/orders__${name}.json`), "utf8");
    const fields = parsed([]).webhooks.subscriptions.find(({ topics }) => topics?.includes(topic))?.include_fields;
    const sent = Object.entries(JSON.parse(sample) as object).filter(([field]) => fields?.includes(field));
    const read = (text: string) => readWebhook({ topic, text, triggeredAt: 1 });
    expect(sent).toHaveLength(3);
    expect(read(JSON.stringify(Object.fromEntries(sent)))).toEqual(read(sample));
    expect(read(sample)).toMatchObject({ do: "read_order" });
  });

  test("has no subscription without topics", () => {
    const { subscriptions } = parsed(["read_orders"]).webhooks;
    const empty = subscriptions.filter(({ topics, compliance_topics }) => (topics ?? compliance_topics)?.length === 0);
    expect(empty).toEqual([]);
    expect(subscriptions.some(({ include_fields }) => include_fields !== undefined)).toBe(false);
  });
});

/** The fields of an app's whole file, as the platform's tool requires them. */
interface WholeFile extends AppFile {
  client_id: string;
  name: string;
  application_url: string;
  embedded: boolean;
  access_scopes: { scopes: string; use_legacy_install_flow?: boolean };
  auth: { redirect_urls: string[] };
  webhooks: AppFile["webhooks"] & { api_version: string };
}

interface Extension {
  extensions: { name: string; type: string; handle: string; description: string }[];
  settings: { fields: { type: string; key?: string }[] };
}

const FIELD_TYPES = ["boolean", "email", "single_line_text_field", "url", "number_decimal"];

describe("the rules of the platform's tool", () => {
  test.each(["https://sds.example.com", "https://sds.example.com/", "https://example.com/sds"])(
    "hold for the app's file at %s",
    (address) => {
      const base = address.replace(/\/$/, "");
      const { "shopify.app.toml": text = "" } = appFiles(address, "client");
      const file = Bun.TOML.parse(text) as unknown as WholeFile;
      expect(file.client_id).toBe("client");
      expect(file.name.length).toBeLessThanOrEqual(30);
      expect([file.application_url, file.embedded]).toEqual([`${base}/app`, true]);
      expect(file.auth.redirect_urls).toEqual([`${base}/app`]);
      expect(file.access_scopes).toEqual({ scopes: ASKED_SCOPES.join(",") });
      expect(file.webhooks.api_version).toMatch(/^20\d\d-(01|04|07|10)$/);
      const { subscriptions } = file.webhooks;
      expect(new Set(subscriptions.map(({ uri }) => uri))).toEqual(new Set([`${base}/platform/webhooks`]));
      const topics = subscriptions.flatMap((each) => [...(each.topics ?? []), ...(each.compliance_topics ?? [])]);
      expect(new Set(topics).size).toBe(topics.length);
      expect(topics).toContain("app/uninstalled");
      expect(topics).toContain("app/scopes_update");
      for (const each of subscriptions) expect((each.topics ?? each.compliance_topics)?.length).toBeGreaterThan(0);
    },
  );

  test("hold for the workflow triggers", () => {
    const files = Object.entries(appFiles("https://sds.example.com", "client")).filter(([path]) =>
      path.endsWith("shopify.extension.toml"),
    );
    expect(files).toHaveLength(TRIGGER_HANDLES.length);
    for (const [path, text] of files) {
      const { extensions, settings } = Bun.TOML.parse(text) as unknown as Extension;
      const [{ type, handle, name, description } = { type: "", handle: "", name: "", description: "" }] = extensions;
      expect([extensions.length, type]).toEqual([1, "flow_trigger"]);
      expect(path).toBe(`extensions/${handle}/shopify.extension.toml`);
      expect(handle).toMatch(/^[a-zA-Z0-9-]{1,30}$/);
      expect([name, description].map((each) => each.length > 0)).toEqual([true, true]);
      const keys = settings.fields.map((field) => field.key);
      expect(new Set(keys).size).toBe(keys.length);
      for (const field of settings.fields) {
        if (field.type.endsWith("_reference")) expect(field.key).toBeUndefined();
        else {
          expect(FIELD_TYPES).toContain(field.type);
          expect(field.key).toMatch(/^[a-zA-Z ]+$/);
        }
      }
    }
  });
});
