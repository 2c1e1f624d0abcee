import { expect, test } from "bun:test";
import { createClient } from "../../src/client/client.ts";
import { type CopyState, copy } from "../../src/client/copy.ts";
import { createRequester } from "../../src/client/requester.ts";
import { createResourceReader } from "../../src/client/resource-reader.ts";
import type { Subscription, SubscriptionWithFields } from "../../src/client/resources.ts";
import { FakeApi, type FakeRow, refusal } from "../support/fake-api.ts";

interface Filter {
  status?: string;
}

function readerOf(api: FakeApi) {
  return createResourceReader<FakeRow, Filter>("orders", createRequester({ url: api.url, key: "cad_pk_test" }));
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test("rows come from all pages, newest first", async () => {
  const api = new FakeApi(7);
  api.pageRows = 3;
  expect(await all(readerOf(api).rows({ status: "PAID" }))).toEqual(api.rows());
  expect(api.requests.map(({ query }) => query)).toEqual([
    { status: "PAID", limit: "250" },
    { status: "PAID", limit: "250", cursor: "ord_4" },
    { status: "PAID", limit: "250", cursor: "ord_1" },
  ]);
});

test("an empty page before other pages does not end the reading", async () => {
  const api = new FakeApi(2);
  let count = 0;
  api.before = () => {
    count += 1;
    if (count > 1) return undefined;
    const page = { data: [], page: { limit: 250, nextCursor: "ord_1" } };
    return Response.json(page, { headers: { "X-Checkpoint": "1~2" } });
  };
  expect(await all(readerOf(api).rows())).toEqual([{ id: "ord_0", value: 0 }]);
});

test("several statuses are sent as a repeated parameter, and an empty list is refused", async () => {
  const urls: string[] = [];
  const client = createClient({
    url: "http://127.0.0.1:1",
    key: "cad_pk_test",
    fetch: async (url) => {
      urls.push(url);
      return Response.json(
        { data: [], page: { limit: 250, nextCursor: null } },
        { headers: { "X-Checkpoint": "1~2" } },
      );
    },
  });
  await all(client.orders.rows({ status: ["PAID", "FAILED"] }));
  expect(urls).toEqual(["http://127.0.0.1:1/api/v1/orders?status=PAID&status=FAILED&limit=250"]);
  expect(all(client.orders.rows({ status: [] }))).rejects.toThrow("status must be a text that is not empty");
});

test("pages continue after a cursor", async () => {
  const api = new FakeApi(5);
  api.pageRows = 2;
  const pages = await all(readerOf(api).pages({ cursor: "ord_3" }));
  expect(pages.map(({ rows, nextCursor }) => ({ ids: rows.map(({ id }) => id), nextCursor }))).toEqual([
    { ids: ["ord_2", "ord_1"], nextCursor: "ord_1" },
    { ids: ["ord_0"], nextCursor: null },
  ]);
});

test("changes come in their order, to the last page, with the newest checkpoint", async () => {
  const api = new FakeApi(3);
  api.put("ord_0", 100);
  api.pageRows = 2;
  const pages = await all(readerOf(api).changes("1~1"));
  expect(pages.map(({ rows, checkpoint }) => ({ ids: rows.map(({ id }) => id), checkpoint }))).toEqual([
    { ids: ["ord_1", "ord_2"], checkpoint: "1~3" },
    { ids: ["ord_0"], checkpoint: "1~4" },
  ]);
  expect(api.requests.map(({ query }) => query["since"])).toEqual(["1~1", "1~3"]);
});

test("a server that gives the same page again is an error, not an endless loop", async () => {
  const api = new FakeApi(1);
  const same = { data: [], page: { limit: 250, nextCursor: "ord_0" } };
  api.before = () =>
    api.requests.length > 9 ? refusal(400, "asked_again") : Response.json(same, { headers: { "X-Checkpoint": "1~1" } });
  const problem = "The server says that more rows follow, and gives the same page again.";
  await expect(all(readerOf(api).rows())).rejects.toThrow(problem);
  expect(api.requests).toHaveLength(2);
  await expect(all(readerOf(api).changes("1~1"))).rejects.toThrow(problem);
  expect(api.requests).toHaveLength(3);
});

test("changes since a time are asked for with updatedSince", async () => {
  const api = new FakeApi(1);
  await all(readerOf(api).changes(new Date("2026-03-01T12:00:00.000Z"), { limit: 10 }));
  expect(api.requests[0]?.query).toEqual({ limit: "10", updatedSince: "2026-03-01T12:00:00.000Z" });
});

test("get finds a row by id or encoded gid, and returns undefined for an unknown id", async () => {
  const api = new FakeApi(1);
  api.put("gid://shopify/Order/1", 5);
  const { get } = readerOf(api);
  expect(await get("gid://shopify/Order/1")).toEqual({ id: "gid://shopify/Order/1", value: 5 });
  expect(await get("ord_9")).toBeUndefined();
  expect(api.requests[0]?.path).toBe("/api/v1/orders/gid%3A%2F%2Fshopify%2FOrder%2F1");
});

test("an empty filter or id is an error, and makes no request", async () => {
  const api = new FakeApi(1);
  const missing = { status: undefined } as unknown as Filter;
  expect(all(readerOf(api).rows(missing))).rejects.toThrow("status must be a text that is not empty");
  expect(readerOf(api).get("")).rejects.toThrow("id must be a text that is not empty");
  expect(api.requests).toEqual([]);
});

test("the error tells an sds without checkpoints from another server", async () => {
  const api = new FakeApi(1);
  api.before = () => Response.json({ data: [], page: { limit: 50, nextCursor: null } });
  await expect(all(readerOf(api).rows())).rejects.toThrow("The server is older than this client.");
  for (const body of [[], null, 1, { data: [], page: null }]) {
    api.before = () => Response.json(body);
    await expect(all(readerOf(api).rows())).rejects.toThrow("The answer is not a page of sds. Is the address right?");
    await expect(readerOf(api).get("ord_0")).rejects.toThrow("The answer is not a row of sds. Is the address right?");
  }
});

/** True only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type RowOf<T> = T extends AsyncIterable<{ rows: (infer Row)[] }> ? Row : never;

test("include asks each request for custom fields, and only then the rows have them in their type", async () => {
  const api = new FakeApi(3);
  api.pageRows = 2;
  const { subscriptions, customers } = createClient({ url: api.url, key: "cad_pk_test" });
  const include = ["customFields"] as const;
  const filled = { include, status: "ACTIVE" as const };
  const shown = [
    await all(subscriptions.rows({ include: ["customFields"] })),
    await all(subscriptions.rows()),
  ] as const;
  const one = await subscriptions.get("sub_1", { include }).catch(() => undefined);
  const pages = [subscriptions.pages(filled), subscriptions.pages({ status: "ACTIVE" })] as const;
  const changes = [subscriptions.changes("1~0", filled), subscriptions.changes("1~0")] as const;
  for (const each of [...pages, ...changes]) await all(each);
  const same: [
    Same<(typeof shown)[0], SubscriptionWithFields[]>,
    Same<(typeof shown)[1], Subscription[]>,
    Same<typeof one, SubscriptionWithFields | undefined>,
    Same<RowOf<(typeof pages)[0]>, SubscriptionWithFields>,
    Same<RowOf<(typeof pages)[1]>, Subscription>,
    Same<RowOf<(typeof changes)[0]>, SubscriptionWithFields>,
    Same<RowOf<(typeof changes)[1]>, Subscription>,
  ] = [true, true, true, true, true, true, true];
  expect(same).not.toContain(false as never);
  // @ts-expect-error: customers have no custom fields
  expect(() => customers.rows({ include })).not.toThrow();
  const asked = api.requests.map(({ path, query: { include: value = "", cursor, since } }) =>
    [path.replace("/api/v1/subscriptions", ""), value, cursor ?? since ?? ""].join(" "),
  );
  const [first, second] = [" customFields ", " customFields ord_1"];
  expect(asked).toEqual([
    ...[first, second, "  ", "  ord_1", "/sub_1 customFields "],
    ...[first, second, "  ", "  ord_1"],
    ...[" customFields 1~0", " customFields 1~2", "  1~0", "  1~2"],
  ]);
});

test.each([[[]], ["customFields"], [null]])("include %p is a TypeError", async (include) => {
  const { subscriptions } = createClient({ url: "http://127.0.0.1:9", key: "cad_pk_test" });
  const wrong = { include } as unknown as { include: readonly ["customFields"] };
  const message = 'include must be ["customFields"]';
  await expect(all(subscriptions.rows(wrong))).rejects.toThrow(new TypeError(message));
  await expect(subscriptions.get("sub_1", wrong)).rejects.toThrow(new TypeError(message));
});

test("copy with include asks for custom fields in the walk and in the changes", async () => {
  const api = new FakeApi(3);
  api.pageRows = 2;
  const { subscriptions } = createClient({ url: api.url, key: "cad_pk_test" });
  const saved: SubscriptionWithFields[] = [];
  let state: CopyState | undefined;
  const store = {
    load: async () => state,
    async save(rows: readonly SubscriptionWithFields[], next: CopyState) {
      saved.push(...rows);
      state = next;
    },
    clear: async () => undefined,
  };
  await copy(subscriptions, store, { include: ["customFields"] });
  expect(api.requests.map(({ query }) => query["include"])).toEqual(["customFields", "customFields", "customFields"]);
  expect(saved).toHaveLength(3);
  await copy(subscriptions, store);
  expect(api.requests.at(-1)?.query).toEqual({ since: "1~3", limit: "250" });
  const { customers } = createClient({ url: api.url, key: "cad_pk_test" });
  // @ts-expect-error: only subscriptions have custom fields
  const wrong = () => copy(customers, store, { include: ["customFields"] });
  expect(wrong).toBeFunction();
});
