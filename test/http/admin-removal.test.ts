import { expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { signedIn } from "../support/signed-in.ts";

test("a form of a shop whose removal has begun is answered as signed out", async () => {
  const { post, store, shop } = await signedIn();
  const { list } = store.keys;
  store.keys.list = async (shopId) => {
    const keys = await list(shopId);
    await store.shops.beginRemoval(shop.domain, START);
    return keys;
  };
  const answer = await post("/admin/keys", { label: "Warehouse" });
  expect(answer.status).toBe(401);
  expect(await answer.text()).toContain("You are not signed in</h1>");
});
