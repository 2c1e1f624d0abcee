import { describe, expect, test } from "bun:test";
import { noAccess } from "../../src/actions/access.ts";
import { saveEndpoint } from "../../src/actions/endpoint.ts";
import type { Actor } from "../../src/domain/audit.ts";
import type { Plan } from "../../src/domain/shop.ts";
import { MERCHANT, OPERATOR } from "../support/actors.ts";
import { START, testShop } from "../support/app.ts";

const PUBLIC = "93.184.215.14";
const NO_WEBHOOKS = noAccess("webhooks");
type Change = Parameters<typeof saveEndpoint>[1]["change"];

async function opened({ plan = "pro" as Plan, addresses = [PUBLIC] } = {}) {
  const { app, shop } = await testShop({}, plan);
  const { store } = app;
  const dependencies = { store, resolve: async () => addresses, allow: [] };
  const save = (change: Change, actor: Actor = MERCHANT) => saveEndpoint(dependencies, { shop, change, actor }, START);
  return { save, stored: () => store.webhooks.settings(shop.id) };
}

describe("saving the endpoint", () => {
  test("stores URL and topics; if one is given, the other stays as it is", async () => {
    const { save, stored } = await opened();
    const url = "https://hooks.example.com/a";
    expect(await save({ url })).toEqual({ settings: { url, topics: [] }, warnings: [] });
    await save({ topics: ["order.failed", "order.charged"] });
    expect(await stored()).toEqual({ url, topics: ["order.charged", "order.failed"] });
    await save({ url: "https://hooks.example.com/b", topics: [] });
    expect(await stored()).toEqual({ url: "https://hooks.example.com/b", topics: [] });
  });

  test("warns of a name that does not resolve, and stores it", async () => {
    const { save, stored } = await opened({ addresses: [] });
    const { warnings } = await save({ url: "https://hooks.example.com/" });
    expect(warnings).toEqual(["the name hooks.example.com does not resolve at present; the URL is kept"]);
    expect(await stored()).toEqual({ url: "https://hooks.example.com/", topics: [] });
  });

  const refused: [Change, string][] = [
    [{ url: "" }, "enter the URL of the endpoint"],
    [{ url: "http://hooks.example.com/" }, "this URL is not accepted: only https:// URLs are accepted"],
    [{ url: "https://hooks.example.com/" }, "this URL is not accepted: 10.0.0.1 is a private address"],
    [{ url: "https://93.184.215.14/", topics: ["order.paid"] }, '"order.paid" is not a topic: choose from'],
  ];
  test.each(refused)("refuses %j, and stores nothing", async (change, message) => {
    const { save, stored } = await opened({ addresses: [PUBLIC, "10.0.0.1"] });
    await expect(save({ topics: ["order.failed"], ...change })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(message),
    });
    expect(await stored()).toEqual({ url: null, topics: [] });
  });

  test("is refused to a merchant whose plan has no webhooks; the operator gets a warning", async () => {
    const { save, stored } = await opened({ plan: "free", addresses: [] });
    const url = "https://hooks.example.com/";
    await expect(save({ url })).rejects.toMatchObject({ code: "plan_required", message: NO_WEBHOOKS });
    expect(await stored()).toEqual({ url: null, topics: [] });
    const { settings, warnings } = await save({ url }, OPERATOR);
    expect(settings.url).toBe(url);
    expect(warnings).toEqual([NO_WEBHOOKS, "the name hooks.example.com does not resolve at present; the URL is kept"]);
  });
});
