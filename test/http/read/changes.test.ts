import { describe, expect, test } from "bun:test";
import { createCheckpoints } from "../../../src/domain/pages/checkpoint.ts";
import { answerOf, badCursor } from "../../support/answer.ts";
import { apply, type PageBody, type TestApp, testApp } from "../../support/app.ts";
import { customer, customers, gid, subscription } from "../../support/records.ts";

const REFUSALS = {
  other_shop: "The checkpoint is from another shop. Use the API key of that shop.",
  other_resource: "The checkpoint is from another resource. Each resource has its own checkpoints.",
  not_issued: "The checkpoint was not issued by this database. Send X-Checkpoint unchanged, URL-encoded.",
  restored:
    "The checkpoint is from before a restore or a failover of the database. Read all pages again, and keep the " +
    "X-Checkpoint of the first one.",
};
const refused = (reason: keyof typeof REFUSALS) => badCursor(reason, REFUSALS[reason]);

async function shopWithCustomers({ app, addShop }: TestApp, count: number, domain = "alpha.myshopify.com") {
  const added = await addShop(domain);
  await apply(app, added.shop, customers(count));
  const read = async (query: string, resource = "customers") => {
    const response = await added.get(`/api/v1/${resource}?${query}`);
    const body = (await response.json()) as PageBody;
    return { ...body, checkpoint: response.headers.get("x-checkpoint") ?? "", link: response.headers.get("link") };
  };
  const since = (checkpoint: string, more = "") => `since=${encodeURIComponent(checkpoint)}${more}`;
  return { ...added, read, since };
}

const numbersOf = ({ data }: PageBody) => data.map(({ shopifyId }) => Number(String(shopifyId).split("/").at(-1)));

describe("changes", () => {
  test("since the checkpoint of a page are the later changes, and each page has a checkpoint", async () => {
    const harness = await testApp();
    const { shop, read, since } = await shopWithCustomers(harness, 3);
    const { checkpoint } = await read("limit=1");
    expect(await read(since(checkpoint))).toMatchObject({ data: [], page: { limit: 50, nextCursor: null } });
    await apply(harness.app, shop, [customer(2, { firstName: "Ada" }), customer(4)]);
    const changed = await read(since(checkpoint));
    expect([numbersOf(changed), changed.page.nextCursor]).toEqual([[2, 4], null]);
    expect(numbersOf(await read(since(changed.checkpoint)))).toEqual([]);
  });

  test("are paged by the cursor of the page, by its checkpoint and by its link", async () => {
    const { read, since, get } = await shopWithCustomers(await testApp(), 5);
    const all = "updatedSince=2026-01-01T00:00:00Z&limit=2";
    const first = await read(all);
    expect([numbersOf(first), first.page.limit]).toEqual([[1, 2], 2]);
    expect(first.page.nextCursor).toBe(first.checkpoint);
    const cursor = `&cursor=${encodeURIComponent(first.checkpoint)}`;
    expect(numbersOf(await read(all + cursor))).toEqual([3, 4]);
    expect(numbersOf(await read(since(first.checkpoint, "&limit=2")))).toEqual([3, 4]);
    const next = await get(/<(.*)>/.exec(first.link ?? "")?.[1] ?? "");
    expect(numbersOf((await next.json()) as PageBody)).toEqual([3, 4]);
    const last = await read(since(first.checkpoint, "&limit=3"));
    expect([numbersOf(last), last.page.nextCursor, last.link]).toEqual([[3, 4, 5], null, null]);
  });

  test("with a checkpoint of another resource, of another shop, or an invented one are refused for that reason", async () => {
    const harness = await testApp();
    const { read, since, get } = await shopWithCustomers(harness, 2);
    const other = await shopWithCustomers(harness, 2, "beta.myshopify.com");
    const own = (await read("limit=1")).checkpoint;
    const changedLast = own.slice(0, -1) + (own.endsWith("a") ? "b" : "a");
    const changedDate = `2025${own.slice(4)}`;
    const wrong = {
      other_resource: [(await read("", "orders")).checkpoint],
      other_shop: [(await other.read("")).checkpoint],
      not_issued: [
        ...[changedLast, changedDate, "", "x", own.toUpperCase(), ` ${own}`],
        (await other.read("", "orders")).checkpoint,
      ],
    };
    for (const [reason, texts] of Object.entries(wrong) as [keyof typeof wrong, string[]][])
      for (const text of texts) {
        const answer = await answerOf(await get(`/api/v1/customers?${since(text)}`));
        expect([text, answer]).toEqual([text, refused(reason)]);
        const asCursor = await get(`/api/v1/customers?${since(own, `&cursor=${encodeURIComponent(text)}`)}`);
        expect([text, await asCursor.json()]).toMatchObject([text, { error: { code: "bad_cursor", reason } }]);
      }
    const { page } = await read("limit=1");
    const listCursor = encodeURIComponent(page.nextCursor ?? "");
    const mixed = await get(`/api/v1/customers?${since(own, `&cursor=${listCursor}`)}`);
    expect(await mixed.json()).toMatchObject({ error: { code: "bad_cursor", reason: "not_issued" } });
    expect((await get(`/api/v1/customers?cursor=${encodeURIComponent(own)}`)).status).toBe(400);
  });

  test("with a checkpoint of a former epoch are refused as restored, and a forged one is not", async () => {
    const harness = await testApp();
    const { shop, since, get } = await shopWithCustomers(harness, 2);
    const former = createCheckpoints({
      epoch: new Uint8Array(32).fill(7),
      formerEpochs: [],
      shopIds: async () => [],
      origins: async () => [],
      formerBranches: async () => [],
      now: harness.clock.now,
    });
    const text = former.format({ shopId: shop.id, resource: "customers", branch: "" }, 1);
    expect(await answerOf(await get(`/api/v1/customers?${since(text)}`))).toEqual(refused("not_issued"));
    const { epoch, formerEpochs } = harness.app.store;
    expect(formerEpochs).toEqual([]);
    const scope = { shopId: shop.id, resource: "customers", branch: "" } as const;
    const now = createCheckpoints({
      epoch,
      formerEpochs: [new Uint8Array(32).fill(7)],
      shopIds: async () => [shop.id],
      origins: async () => [],
      formerBranches: async () => [],
      now: harness.clock.now,
    });
    expect([now.parse(scope, text), await now.parseFormer(scope, text)]).toEqual([undefined, "restored"]);
    expect(await now.parseFormer({ ...scope, resource: "orders" }, text)).toBe("other_resource");
    expect(await now.parseFormer({ ...scope, shopId: shop.id + 1 }, text)).toBe("not_issued");
  });

  test("refuse a cursor that lies before their checkpoint", async () => {
    const { read, since, get } = await shopWithCustomers(await testApp(), 3);
    const { checkpoint: early } = await read("updatedSince=2026-01-01T00:00:00Z&limit=1");
    const { checkpoint: late } = await read("limit=1");
    const response = await get(`/api/v1/customers?${since(late, `&cursor=${encodeURIComponent(early)}`)}`);
    expect(response.status).toBe(400);
  });

  test("since a time include at most the minute before it", async () => {
    const harness = await testApp();
    const { shop, read } = await shopWithCustomers(harness, 2);
    harness.clock.ms += 120_000;
    await apply(harness.app, shop, [customer(1, { firstName: "Ada" })], harness.clock.now());
    const at = (ms: number) => `updatedSince=${new Date(harness.clock.ms + ms).toISOString()}`;
    expect(numbersOf(await read(at(-60_000)))).toEqual([1]);
    expect(numbersOf(await read(at(-120_000)))).toEqual([2, 1]);
    expect(numbersOf(await read(at(60_000)))).toEqual([]);
  });

  test("can be filtered", async () => {
    const harness = await testApp();
    const { app, shop, read } = { ...harness, ...(await shopWithCustomers(harness, 1)) };
    await apply(app, shop, [subscription(1), subscription(2, { status: "PAUSED" }), subscription(3)]);
    const query = "updatedSince=2026-01-01T00:00:00Z";
    expect(numbersOf(await read(`${query}&status=ACTIVE`, "subscriptions"))).toEqual([1, 3]);
    expect(numbersOf(await read(`${query}&customerId=${gid.customer(2)}`, "subscriptions"))).toEqual([2]);
  });
});

test("a list and its checkpoint come from one snapshot of the mirror", async () => {
  const harness = await testApp();
  const { shop, read, since } = await shopWithCustomers(harness, 2);
  const before = await read("");
  await apply(harness.app, shop, [customer(3)]);
  const after = await read("");
  expect(before.checkpoint).not.toBe(after.checkpoint);
  expect(numbersOf(await read(since(before.checkpoint)))).toEqual([3]);
  expect(numbersOf(await read(since(after.checkpoint)))).toEqual([]);
});
