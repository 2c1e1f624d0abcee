import { expect, spyOn, test } from "bun:test";
import { auditEntry } from "../../src/domain/audit.ts";
import { OPERATOR } from "../support/actors.ts";
import { START } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { signedIn } from "../support/signed-in.ts";

test("each change on the page is in the audit list of its shop, without secrets and paths", async () => {
  const { all, html, post, store, shop } = await signedIn();
  const { shop: other } = await all.addShop("beta.myshopify.com");
  await post("/admin/keys", { label: "Warehouse", once: "a" });
  await post("/admin/webhooks", { url: "https://93.184.216.34/secret-path?token=x", topics: "order.failed" });
  await post("/admin/webhooks/test", { topic: "order.failed" });
  await post("/admin/webhooks/secret");
  await post("/admin/webhooks/rotate", { overlap: "" });
  await post("/admin/triggers", { triggers: "subscription-created" });
  await post("/admin/fields", { key: "note", label: "Note", type: "text" });
  await post("/admin/style", { source: "p { color: red }" });
  await post("/admin/webhooks/clear");
  const entries = await store.audit.list(shop.id, {}, {}, 50);
  expect(entries.map(({ action }) => action).toReversed()).toEqual([
    "session.begun",
    "key.created",
    "endpoint.changed",
    "test.sent",
    "secret.shown",
    "secret.rotated",
    "triggers.changed",
    "fields.changed",
    "style.saved",
    "endpoint.removed",
  ]);
  for (const { who, from } of entries) expect([/^session [0-9a-f]{6}$/.test(who), from !== null]).toEqual([true, true]);
  const page = await html("/admin/audit");
  expect(page).toContain("host 93.184.216.34");
  expect(page).toContain("triggers subscription-created");
  const secret = await store.webhooks.secret(shop.id, START);
  for (const hidden of ["secret-path", "token=x", secret]) {
    expect(page).not.toContain(hidden);
    expect(JSON.stringify(entries)).not.toContain(hidden);
  }
  expect(await store.audit.list(other.id, {}, {}, 50)).toEqual([]);
});

test("a form that saves what is stored already leaves no entry", async () => {
  const { post, store, shop } = await signedIn();
  const save = async (path: string) => {
    await post("/admin/webhooks", { url: `https://93.184.216.34/${path}` });
    await post("/admin/webhooks/topics", { topics: "order.failed" });
    await post("/admin/triggers", { triggers: ["subscription-created", "endpoint-failing"] });
    await post("/admin/style", { source: `p { color: red } /* ${path} */` });
    return (await store.audit.list(shop.id, {}, {}, 50)).length;
  };
  const first = await save("a");
  expect(first).toBe(5);
  expect(await save("a")).toBe(first);
  expect(await save("b")).toBe(first + 2);
});

test("an entry of a custom field has what changed in its definition", async () => {
  const { post, html } = await signedIn();
  const note = { key: "note", label: "Note", type: "choice", options: "red", personal: "yes" };
  await post("/admin/fields", note);
  for (const _ of ["once", "again"])
    await post("/admin/fields/edit/note", { ...note, label: "Gift", options: "red\nblue" });
  await post("/admin/fields/archive/note");
  await post("/admin/fields/restore/note");
  const page = await html("/admin/audit?what=fields.changed");
  const changes = [...page.matchAll(/<td role="cell">(note: [^<]*)<\/td>/g)].map(([, text]) => text);
  expect(changes).toEqual([
    "note: archived yes → no",
    "note: archived no → yes",
    "note: label Note → Gift, options red → red, blue",
    "note: label Note, type choice, options red, subscribers may edit no, personal yes, archived no",
  ]);
});

test("a refused form leaves no entry", async () => {
  const { post, store, shop } = await signedIn();
  const before = await store.audit.list(shop.id, {}, {}, 50);
  expect((await post("/admin/keys", { label: " " })).status).toBe(422);
  expect((await post("/admin/webhooks", { url: "http://10.0.0.1/" })).status).toBe(422);
  expect((await post("/admin/style", { source: "p {" })).status).toBe(422);
  expect((await post("/admin/webhooks/test", { topic: "order.failed" })).status).toBe(422);
  expect(await store.audit.list(shop.id, {}, {}, 50)).toEqual(before);
});

test("two presses of Sign out at once leave one entry", async () => {
  const { post, store, shop } = await signedIn();
  await Promise.all([post("/admin/sign-out"), post("/admin/sign-out")]);
  expect(await store.audit.list(shop.id, { action: "session.ended" }, {}, 50)).toHaveLength(1);
});

test("the list has filters and pages in its address, and names what it refuses", async () => {
  const { get, html, store, shop } = await signedIn();
  for (let hour = 0; hour < 120; hour += 1)
    await store.audit.add(shop.id, auditEntry(OPERATOR, START + hour, "link.made", { subject: `link ${hour}` }));
  const subjects = (page: string) => [...page.matchAll(/>(link \d+)</g)].map(([, subject]) => subject);
  const first = await html("/admin/audit?what=link.made");
  expect(subjects(first)).toEqual(Array.from({ length: 50 }, (_, index) => `link ${119 - index}`));
  const older = /id="older" href="([^"]*)"/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const second = await html(older);
  expect(subjects(second)[0]).toBe("link 69");
  const newer = /id="newer" href="([^"]*)"/.exec(second)?.[1]?.replaceAll("&amp;", "&") ?? "";
  expect(subjects(await html(newer))).toEqual(subjects(first));
  expect(subjects(await html("/admin/audit?who=session"))).toEqual([]);
  const refused = await get("/admin/audit?what=nothing&from=yesterday");
  expect(refused.status).toBe(422);
  expect(await refused.text()).toContain("“yesterday” is not a date like 2026-01-31.");
  const hostile = await html(`/admin/audit?who=${encodeURIComponent('"><script>alert(1)</script>')}&older=abc`);
  expect(hostile).not.toContain("<script>alert");
});

test("a search that ended before it found an entry goes on with Older or Newer", async () => {
  const { html, store } = await signedIn();
  const search = spyOn(store.audit, "page").mockResolvedValue({ entries: [], end: 500 });
  afterTest(() => search.mockRestore());
  const linksOf = (page: string) =>
    [...page.matchAll(/id="(newer|older)" href="[^"]*?&amp;(\w+=\d+)"/g)].map(([, ...found]) => found);
  const first = await html("/admin/audit?what=link.made");
  expect([first.includes("Choose “Older” to continue"), linksOf(first)]).toEqual([true, [["older", "older=500"]]]);
  const second = await html("/admin/audit?what=link.made&older=900");
  expect(linksOf(second)).toEqual([
    ["newer", "newer=899"],
    ["older", "older=500"],
  ]);
  const back = await html("/admin/audit?what=link.made&newer=9");
  expect([back.includes("Choose “Newer” to continue"), linksOf(back)]).toEqual([
    true,
    [
      ["newer", "newer=500"],
      ["older", "older=10"],
    ],
  ]);
});
