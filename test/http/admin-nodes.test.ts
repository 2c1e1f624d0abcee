import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type TestApp, temporaryFolder, testApp } from "../support/app.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";
import { pressSignIn, signInPath, visit } from "../support/visitor.ts";

const KEY = /cad_pk_[0-9a-f]{48}/;
const WRONG = `/admin/sign-in?token=${"A".repeat(43)}`;

// On SQLite, a second node is refused.
describe.skipIf(!hasPostgres())("the settings page of two nodes", () => {
  /** Starts two nodes, and signs in a visitor whose requests reach the nodes in turn. */
  async function opened() {
    const masterKeyFile = join(temporaryFolder(), "master.key");
    const env = { SDS_DATABASE_URL: await emptyDatabase(), SDS_MASTER_KEY_FILE: masterKeyFile };
    const nodes: [TestApp, TestApp] = [await testApp(env), await testApp(env)];
    let requests = 0;
    const request: TestApp["request"] = (path, init) => (nodes[requests++ % 2] as TestApp).request(path, init);
    const balanced = { ...nodes[0], request };
    const { shop } = await nodes[0].addShop();
    return { nodes, balanced, shop, visitor: await visit(balanced, shop) };
  }

  test("shows a new key that the other node made, once", async () => {
    const { nodes, visitor, shop } = await opened();
    const headers = { Cookie: visitor.cookie };
    const post = { method: "POST", headers, body: new URLSearchParams({ csrf: visitor.csrf, label: "New" }) };
    expect((await nodes[0].request("/admin/keys", post)).status).toBe(303);
    const html = async (node: TestApp) => (await node.request("/admin/keys", { headers })).text();
    const key = KEY.exec(await html(nodes[1]))?.[0] ?? "";
    expect(key).not.toBe("");
    for (const node of nodes) expect(await html(node)).not.toMatch(KEY);
    const read = { headers: { Authorization: `Bearer ${key}` } };
    await nodes[0].app.store.keys.revoke(shop.id, key.slice(0, 15), nodes[0].clock.now());
    for (const node of nodes) expect((await node.request("/api/v1/customers", read)).status).toBe(401);
  });

  test("finds no entry of the audit list by a name with U+0000, which the server would refuse", async () => {
    const { visitor } = await opened();
    const found = await visitor.get("/admin/audit?who=a%00b");
    expect([found.status, await found.text()]).toEqual([200, expect.stringContaining("No entry matches.")]);
  });

  test("accepts a form that is posted to both nodes at once on one node only", async () => {
    const { nodes, visitor, shop } = await opened();
    const fields = { csrf: visitor.csrf, label: "Twice", once: crypto.randomUUID() };
    const posts = Array.from({ length: 6 }, () => visitor.post("/admin/keys", fields));
    const statuses = (await Promise.all(posts)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([303, 403, 403, 403, 403, 403]);
    const keys = await nodes[1].app.store.keys.list(shop.id);
    expect(keys.filter(({ label }) => label === "Twice")).toHaveLength(1);
  });

  test("allows as many wrong sign-in links as one node, and does not count right ones", async () => {
    const { nodes, balanced, shop } = await opened();
    for (let n = 0; n < 4; n += 1) {
      expect((await pressSignIn(balanced, await signInPath(balanced, shop))).status).toBe(303);
      expect((await pressSignIn(balanced, WRONG)).status).toBe(401);
    }
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => (await pressSignIn(balanced, WRONG)).status),
    );
    expect(statuses.toSorted()).toEqual([401, ...Array.from({ length: 7 }, () => 429)]);
    for (const node of nodes) {
      // Moves each node's clock by far more than a minute, because on a busy machine the two clocks are seconds apart.
      node.clock.ms += 10 * 60_000;
      expect((await pressSignIn(node, await signInPath(node, shop))).status).toBe(303);
    }
  });

  test("ends a session on both nodes", async () => {
    const { nodes, visitor } = await opened();
    await visitor.post("/admin/sign-out");
    for (const node of nodes)
      expect((await node.request("/admin/keys", { headers: { Cookie: visitor.cookie } })).status).toBe(401);
  });
});
