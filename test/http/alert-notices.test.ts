import { expect, test } from "bun:test";
import { claimOne, failed, queueRewards, record } from "../conformance/delivery-fixtures.ts";
import { HOUR, TOKENS } from "../conformance/fixtures.ts";
import { START } from "../support/app.ts";
import { signedIn } from "../support/signed-in.ts";

test("an endpoint that has failed for an hour is on every page, and the overview begins with the same sentence", async () => {
  const { html, store, shop } = await signedIn();
  await store.webhooks.set(
    shop.id,
    { url: "https://hooks.example.com/in?token=hush", topics: ["loyalty.reward_earned"] },
    START,
  );
  for (const hour of [0, 1, 2, 3, 4]) {
    expect(await html("/admin/keys")).not.toContain("alert-endpoint");
    const at = START + hour * HOUR;
    await queueRewards(store, shop, [hour], at);
    await record(store, [failed(await claimOne(store, shop, { now: at }), at)], [8_760 * HOUR]);
  }
  for (const path of ["/admin/keys", "/admin/webhooks", "/admin/fields", "/admin/deliveries"]) {
    const page = await html(path);
    const [, notice = ""] = /id="alert-endpoint" class="notice bad"><p>(.*?)<\/p>/s.exec(page) ?? [];
    expect(notice.replaceAll(/<[^>]*>/g, "")).toBe(
      "Your endpoint hooks.example.com has failed since 2026-03-01 12:00 UTC. The endpoint responded with HTTP 500. " +
        // The page of the deliveries has no link to itself.
        `Repair it before more deliveries die. ${path === "/admin/deliveries" ? "" : "See the deliveries"}`,
    );
    expect(page).not.toContain("alert-dead");
  }
  const overview = await html("/admin/overview");
  expect(overview).not.toContain("alert-endpoint");
  expect(overview).toContain("Your endpoint hooks.example.com has failed since 2026-03-01 12:00 UTC.");
});

test("a trouble of the connection is on every page, with its hostile text as text", async () => {
  const { html, store, shop } = await signedIn();
  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await store.connections.setTrouble(shop.id, "<script>alert(1)</script>", START);
  const page = await html("/admin/keys");
  expect(page).toContain('id="alert-connection"');
  expect(page).not.toContain("<script>alert");
});
