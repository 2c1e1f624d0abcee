import { describe, expect, test } from "bun:test";
import { hashKey } from "../../src/domain/key.ts";
import { apiKey } from "../conformance/fixtures.ts";
import { START } from "../support/app.ts";
import { led, signedIn } from "../support/signed-in.ts";
import { visit } from "../support/visitor.ts";

const SCRIPT = "<script>alert(1)</script>";
const SHOWN_SCRIPT = "&lt;script>alert(1)&lt;/script>";
/** The time START as the pages show it. */
const TIME =
  '<time datetime="2026-03-01T12:00:00.000Z" title="2026-03-01 12:00:00.000 UTC">2026-03-01 12:00 UTC</time>';
const KEY = /cad_pk_[0-9a-f]{48}/;

describe("API keys", () => {
  test("a new key comes with a command that reads with it, and the address of the API", async () => {
    const { html, post, store, shop } = await signedIn({ SDS_PUBLIC_URL: "https://sds.example.com" });
    await post("/admin/keys", { label: "Warehouse" });
    const page = await html("/admin/keys");
    const [key = ""] = KEY.exec(page) ?? [];
    const text = page.replaceAll("&quot;", '"');
    expect(text).toContain(
      `>curl -H "Authorization: Bearer ${key}" "https://sds.example.com/api/v1/subscriptions?limit=1"<`,
    );
    expect(text).toContain('<code id="api-address">https://sds.example.com/api/v1</code>');
    expect(text).toMatch(/data-label="Made by">session [0-9a-f]{6}</);
    const made = (await store.keys.list(shop.id)).find(({ label }) => label === "Warehouse");
    expect(made?.createdBy).toMatch(/^session [0-9a-f]{6}$/);
    expect(page).toContain('data-label="Made by">unknown<');
    expect(page).toContain('data-label="Last used">never<');
  });

  test("a second key with one label is made only after a question", async () => {
    const { html, post, store, shop } = await signedIn();
    const labels = async () =>
      (await store.keys.list(shop.id)).map(({ label }) => label).filter((each) => each !== "Test");
    const label = `Ware "house" ${SCRIPT}`;
    await post("/admin/keys", { label });
    await html("/admin/keys");
    const asked = await post("/admin/keys", { label: ` ${label}` });
    const page = await asked.text();
    expect(asked.status).toBe(409);
    expect(page).toContain('<button type="submit" id="confirm">Create another key</button>');
    expect(page).toContain(`name="label" value="Ware &quot;house&quot; ${SHOWN_SCRIPT}"`);
    expect(page).toContain(`<strong>Ware &quot;house&quot; ${SHOWN_SCRIPT}</strong>`);
    expect(await labels()).toEqual([label]);
    expect(led(await post("/admin/keys", { label, again: "yes" }))).toEqual([303, "/admin/keys"]);
    expect(await labels()).toEqual([label, label]);
    expect(await html("/admin/keys")).toMatch(KEY);
    for (const { id } of await store.keys.list(shop.id)) await store.keys.revoke(shop.id, id, START);
    expect(led(await post("/admin/keys", { label }))).toEqual([303, "/admin/keys"]);
  });

  test("a new key is shown once and works, until it is revoked: then the next request with it is refused", async () => {
    const { all, html, post, store, shop } = await signedIn();
    expect(led(await post("/admin/keys", { label: "  Warehouse " }))).toEqual([303, "/admin/keys"]);
    const first = await html("/admin/keys");
    const key = KEY.exec(first)?.[0] ?? "";
    expect(first).toContain("This is the new key Warehouse:");
    expect(first).toContain("It won't be shown again.");
    expect(await html("/admin/keys")).not.toMatch(KEY);
    const read = () => all.request("/api/v1/customers", { headers: { Authorization: `Bearer ${key}` } });
    expect((await read()).status).toBe(200);

    const id = (await store.keys.list(shop.id)).find(({ label }) => label === "Warehouse")?.id ?? "";
    const asked = await html(`/admin/keys/${id}/revoke`);
    expect(asked).toContain("<strong>Warehouse</strong>");
    expect(asked).toContain(key.slice(0, 15));
    expect((await read()).status).toBe(200);
    expect(led(await post(`/admin/keys/${id}/revoke`))).toEqual([303, "/admin/keys"]);
    expect((await read()).status).toBe(401);
    expect(await html("/admin/keys")).toContain(`The key Warehouse (${key.slice(0, 15)}…) is revoked.`);
    expect((await post(`/admin/keys/${id}/revoke`)).status).toBe(404);
  });

  test("a new key is shown only on the page of keys, in the session that created it", async () => {
    const { all, html, post, get, shop } = await signedIn();
    const other = await visit(all, shop);
    await post("/admin/keys", { label: "Warehouse" });
    expect(await html("/admin/webhooks")).not.toMatch(KEY);
    expect(await other.html("/admin/keys")).not.toMatch(KEY);
    expect(await (await get("/admin/keys")).text()).toMatch(KEY);
  });

  test("a new key that is not shown within five minutes is dropped", async () => {
    const { all, html, post } = await signedIn();
    await post("/admin/keys", { label: "Warehouse" });
    all.clock.ms += 5 * 60_000;
    expect(await html("/admin/keys")).not.toMatch(KEY);
  });

  test.each(["", "   ", "x".repeat(201), "a\nb"])(
    "the label %p is refused, with a message at its field",
    async (label) => {
      const { post } = await signedIn();
      const answer = await post("/admin/keys", { label });
      const html = await answer.text();
      expect(answer.status).toBe(422);
      expect(html).toContain('aria-invalid="true" aria-describedby="label-error label-help"');
      expect(html).toContain("The label must have 1 to 200 characters and no control or invisible characters.");
    },
  );

  test("a refused label stays in its field, and a script in a label is shown as text", async () => {
    const { post, html } = await signedIn();
    const label = `${SCRIPT}"'${"x".repeat(200)}`;
    expect(await (await post("/admin/keys", { label })).text()).toContain(`value="${SHOWN_SCRIPT}&quot;'xxx`);
    await post("/admin/keys", { label: SCRIPT });
    expect(await html("/admin/keys")).not.toContain(SCRIPT);
    expect(await html("/admin/keys")).toContain(SHOWN_SCRIPT);
  });

  test("a legacy key has a badge, and the page says what to do", async () => {
    const { store, shop, html } = await signedIn();
    expect(await html("/admin/keys")).not.toContain("Legacy, rotate");
    const entry = apiKey("old", { lastUsedAt: START, legacy: true });
    await store.keys.add(shop.id, entry, hashKey(`cad_pk_${"ab".repeat(24)}`));
    const page = await html("/admin/keys");
    expect(page).toContain('<span class="badge warning">Legacy, rotate</span>');
    expect(page).toContain('id="legacy-hint"');
    expect(page).toContain(TIME);
  });
});
