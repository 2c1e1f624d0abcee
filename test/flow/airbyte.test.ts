import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Customer, Order, RESOURCES, Subscription } from "../../src/domain/resources.ts";
import { apiShop, byId } from "../support/api-shop.ts";
import { customer, order } from "../support/records.ts";

type Json = { [key: string]: unknown };

interface Stream {
  name: string;
  primary_key: string[];
  retriever: {
    requester: { path: string; request_headers: Record<string, string> };
    paginator: {
      page_size_option: { field_name: string };
      page_token_option: { field_name: string };
      pagination_strategy: { page_size: number; cursor_value: string; stop_condition: string };
    };
    record_selector: { extractor: { field_path: string[] } };
  };
  incremental_sync: {
    cursor_field: string;
    datetime_format: string;
    lookback_window: string;
    start_time_option: { field_name: string };
  };
  schema_loader: { schema: { properties: Record<string, Json> } };
}

/** Replaces `$ref` as Airbyte does. */
function resolved(node: unknown, whole: Json): unknown {
  if (Array.isArray(node)) return node.map((one) => resolved(one, whole));
  if (typeof node === "string" && node.startsWith("#/")) {
    const found = node
      .slice(2)
      .split("/")
      .reduce<unknown>((at, key) => (at as Json)[key], whole);
    return resolved(found, whole);
  }
  if (typeof node !== "object" || node === null) return node;
  const { $ref, ...own } = node as Json;
  const fields = Object.fromEntries(Object.entries(own).map(([key, value]) => [key, resolved(value, whole)]));
  return $ref === undefined ? fields : { ...(resolved($ref, whole) as Json), ...fields };
}

let streams: Stream[];

beforeAll(async () => {
  const text = await Bun.file(join(import.meta.dir, "../../src/docs/airbyte.yaml")).text();
  const manifest = Bun.YAML.parse(text) as Json;
  streams = (resolved(manifest, manifest) as { streams: Stream[] }).streams;
});

/** Reduces a JSON schema to its types. The API's schema has details that the connector's schema does not have. */
function typeOf(schema: Json): unknown {
  const { anyOf, type, items, properties } = schema;
  if (Array.isArray(anyOf)) {
    const types = [...new Set(anyOf.map((one) => (one as Json)["type"]))];
    return types.length === 1 ? types[0] : types.toSorted();
  }
  if (type === "array") return { items: typeOf(items as Json) };
  if (type === "object") return typesOf(properties as Record<string, Json>);
  return Array.isArray(type) ? type.toSorted() : type;
}

function typesOf(properties: Record<string, Json>): Json {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, typeOf(schema)]));
}

describe("docs/airbyte.yaml", () => {
  test("has each resource with all its fields, in their order and with their types", () => {
    const schemas = { subscriptions: Subscription, customers: Customer, orders: Order };
    expect(streams.map(({ name }) => name)).toEqual([...RESOURCES]);
    for (const { name, schema_loader } of streams) {
      const { _synced_at, ...properties } = schema_loader.schema.properties;
      const served = schemas[name as keyof typeof schemas].properties as unknown as Record<string, Json>;
      expect({ name, types: JSON.stringify(typesOf(properties)) }).toEqual({
        name,
        types: JSON.stringify(typesOf(served)),
      });
    }
  });

  test("syncs all rows, and later the changed rows, when the test reads it as Airbyte does", async () => {
    const shop = await apiShop(300);

    /**
     * Syncs a stream once.
     * @param since the state of the previous sync
     * @returns what the API returned, and the next state
     */
    async function sync({ retriever, incremental_sync }: Stream, since: string) {
      const { requester, paginator, record_selector } = retriever;
      const { page_size, cursor_value, stop_condition } = paginator.pagination_strategy;
      // These two templates need Jinja, which this test does not run. The code below does the same.
      expect([cursor_value, stop_condition, incremental_sync.datetime_format]).toEqual([
        "{{ response['page']['nextCursor'] }}",
        "{{ response['page']['nextCursor'] is none }}",
        "%Y-%m-%dT%H:%M:%SZ",
      ]);
      const endTime = `${new Date().toISOString().slice(0, 19)}Z`;
      const rows: unknown[] = [];
      let token: string | null = null;
      do {
        const query: Record<string, string> = {
          [paginator.page_size_option.field_name]: String(page_size),
          [incremental_sync.start_time_option.field_name]: since,
          ...(token !== null && { [paginator.page_token_option.field_name]: token }),
        };
        const response: Response = await fetch(`${shop.server.url}${requester.path}?${new URLSearchParams(query)}`, {
          headers: { ...requester.request_headers, Authorization: `Bearer ${shop.key}` },
        });
        const body = (await response.json()) as Json & { page: { nextCursor: string | null } };
        expect({ status: response.status, error: body["error"] }).toEqual({ status: 200, error: undefined });
        const [field = ""] = record_selector.extractor.field_path;
        rows.push(...(body[field] as unknown[]));
        token = body.page.nextCursor;
      } while (token !== null);
      return { rows, state: endTime };
    }

    const states = new Map<string, { copy: Record<string, unknown>; state: string }>();
    for (const stream of streams) {
      const { rows, state } = await sync(stream, "2000-01-01T00:00:00Z");
      expect(byId(rows)).toEqual(await shop.mirror(stream.name));
      states.set(stream.name, { copy: byId(rows), state });
    }
    await shop.load([customer(5, { email: "ada@example.com" }), order(5, 2)]);
    for (const stream of streams) {
      const { copy = {}, state = "" } = states.get(stream.name) ?? {};
      const { rows } = await sync(stream, state);
      expect({ ...copy, ...byId(rows) }).toEqual(await shop.mirror(stream.name));
    }
  });
});
