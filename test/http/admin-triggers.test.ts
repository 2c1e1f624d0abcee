import { describe, expect, test } from "bun:test";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import { claimOne, record } from "../conformance/delivery-fixtures.ts";
import { chooseAllEvents } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { subscription } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";
import { textIn } from "./page-parts.ts";

describe("workflow triggers", () => {
  test("are switched on and off, all together and one by one", async () => {
    const { html, post, store, shop } = await signedIn();
    expect(await html("/admin/triggers")).toContain("No workflow can be started at present. The shop is not connected");
    expect(
      led(await post("/admin/triggers", { triggers: ["streak-milestone-reached", "subscription-created"] })),
    ).toEqual([303, "/admin/triggers"]);
    expect((await store.shops.settings(shop.id)).triggers).toEqual([
      "subscription-created",
      "streak-milestone-reached",
    ]);
    const page = await html("/admin/triggers");
    expect(page).toContain("On: Subscription created, Streak milestone reached.");
    expect(page.match(/name="triggers" value="[\w-]+" checked/g)?.length).toBe(2);
    await post("/admin/triggers", { triggers: [...TRIGGER_HANDLES] });
    expect((await store.shops.settings(shop.id)).triggers).toEqual(TRIGGER_HANDLES);
    await post("/admin/triggers");
    expect((await store.shops.settings(shop.id)).triggers).toEqual([]);
    expect((await post("/admin/triggers", { triggers: "nothing" })).status).toBe(400);
    expect((await post("/admin/triggers", { triggers: "all" })).status).toBe(400);
  });

  test("say in a merchant's words why a start failed, without commands", async () => {
    const { all, html, store, shop } = await signedIn();
    await chooseAllEvents(store, shop);
    await store.webhooks.set(shop.id, { topics: [] }, START);
    await apply(all.app, shop, [subscription(1)]);
    const claimed = await claimOne(store, shop);
    const error = "The platform refuses the shop's token (HTTP 401); run `sds shop connect`.";
    await record(store, [{ claim: claimed, outcome: { statusCode: 401, error }, startedAt: START, duration: 9 }]);
    for (const path of ["/admin/deliveries/workflows", `/admin/deliveries/${claimed.id}`]) {
      const page = await html(path);
      expect(page).toContain("Shopify refuses the app's access.");
      expect(page).not.toMatch(/platform refuses|sds shop/);
    }
    const details = await html(`/admin/deliveries/${claimed.id}`);
    expect(details).toContain("Open the app in Shopify's admin. If that does not help, install it there again.");
    expect(details).not.toContain("Correct what Shopify names");
  });

  test("have their own log, without webhooks", async () => {
    const { all, get, html, post, store, shop } = await signedIn();
    await chooseAllEvents(store, shop);
    await store.webhooks.set(shop.id, { topics: [] }, START);
    await apply(all.app, shop, [subscription(1)]);
    const [queued] = await store.deliveries.list(shop.id, { limit: 1 });
    expect(queued?.kind).toBe("trigger");
    expect(await html("/admin/triggers")).not.toContain('id="connection"');
    const page = await html("/admin/deliveries/workflows");
    expect(textIn(page, "last")).toStartWith("Status Trigger About Result Queued ");
    expect(page).toContain(`id="last-${queued?.id}"`);
    expect(await html("/admin/deliveries")).toContain('id="no-deliveries"');
    const details = await html(`/admin/deliveries/${queued?.id}`);
    expect(details).toContain("Workflow start: subscription-created");
    expect(details).not.toContain("X-Service-Signature");
    expect(details).not.toContain("/curl");
    expect((await get(`/admin/deliveries/${queued?.id}/curl`)).status).toBe(404);
    expect(led(await post(`/admin/deliveries/${queued?.id}/retry`, { log: "?status=dead" }))).toEqual([
      303,
      "/admin/deliveries/workflows?status=dead",
    ]);
  });
});
