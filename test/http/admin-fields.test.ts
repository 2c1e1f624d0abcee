import { describe, expect, test } from "bun:test";
import { findFields } from "../../src/actions/field.ts";
import { addField, archiveField, changeField, type NewField } from "../../src/domain/fields/definition.ts";
import { apply, START } from "../support/app.ts";
import { fieldValue, subscription } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";

const SCRIPT = "<script>alert(1)</script>";
const SHOWN_SCRIPT = "&lt;script>alert(1)&lt;/script>";
const FIELDS = "/admin/fields";
const NOTE: NewField = { key: "note", label: "Note", type: "text" };
const ALL: readonly NewField[] = [
  NOTE,
  { key: "weight", label: "Weight", type: "number" },
  { key: "gift", label: "Gift", type: "boolean" },
  { key: "until", label: "Until", type: "date" },
  { key: "size", label: "Size", type: "choice", options: ["10", "2"], subscriberEditable: true },
];

/** Signs in a merchant whose shop has these fields and one subscription. */
async function merchant(fields: readonly NewField[] = ALL, plan: "pro" | "free" = "pro") {
  const visitor = await signedIn({}, plan);
  const { all, store, shop } = visitor;
  await apply(all.app, shop, [subscription(1)]);
  for (const field of fields) await store.fields.update(shop.id, (each) => addField(each, field));
  const { id } = (await findFields(store, shop, "1")).subscription;
  const path = `${FIELDS}/values/${id}`;
  return { ...visitor, id, path, values: () => store.fields.valuesOf(shop.id, id) };
}

/** Returns the form that a browser posts if only these values were changed on the page. */
function changed(html: string, values: Record<string, string>): Record<string, string> {
  const hashes = [...html.matchAll(/name="(shown\.\w+)" value="(\w+)"/g)].map(([, name = "", hash = ""]) => [
    name,
    hash,
  ]);
  const typed = Object.entries(values).map(([key, text]) => [`value.${key}`, text]);
  return Object.fromEntries([...hashes, ...typed]) as Record<string, string>;
}

describe("definitions", () => {
  test("are added, changed, archived and brought back", async () => {
    const { html, post, store, shop } = await signedIn();
    const form = await html(FIELDS);
    expect(form).toContain('id="no-fields"');
    expect(form).toMatch(/name="key"[^>]* maxlength="40"/);
    const added = {
      key: "size",
      label: " Size ",
      type: "choice",
      options: "S\r\n\r\n M \r\n",
      subscriberEditable: "on",
    };
    expect(led(await post(FIELDS, added))).toEqual([303, FIELDS]);
    const size = {
      key: "size",
      label: "Size",
      type: "choice",
      options: ["S", "M"],
      subscriberEditable: true,
      personal: false,
      archivedAt: null,
      hasValues: false,
    };
    expect(await store.fields.list(shop.id)).toEqual([{ ...size, type: "choice" }]);
    const page = await html(FIELDS);
    expect(page).toContain("The field Size is added.");
    expect(page).toContain("Choice: S, M");

    const edited = { label: "Größe", type: "choice", options: "S\r\nM\r\nL", personal: "yes" };
    expect(await html(`${FIELDS}/edit/size`)).toContain("S\nM</textarea>");
    expect(led(await post(`${FIELDS}/edit/size`, edited))).toEqual([303, FIELDS]);
    const changedSize = { label: "Größe", options: ["S", "M", "L"], subscriberEditable: false, personal: true };
    expect(await store.fields.list(shop.id)).toMatchObject([changedSize]);

    expect(led(await post(`${FIELDS}/archive/size`))).toEqual([303, FIELDS]);
    expect(await html(FIELDS)).toContain('id="archived-size"');
    expect(led(await post(`${FIELDS}/restore/size`))).toEqual([303, FIELDS]);
    expect(await html(FIELDS)).toContain('id="field-size"');
    expect(await store.fields.list(shop.id)).toMatchObject([{ archivedAt: null }]);
  });

  test.each([
    [{ key: "Size", label: "x", type: "text" }, "The key must be 1 to 40 lower-case letters"],
    [{ key: "note", label: "x", type: "text" }, "The field note exists already."],
    [{ key: "x", label: " ", type: "text" }, "The label must have 1 to 80 characters, without invisible ones."],
    [{ key: "x", label: "x", type: "json" }, "The type must be one of"],
    [{ key: "x", label: "x", type: "choice", options: "\r\n" }, "A choice must have 1 to 50 options."],
    [{ key: "x", label: "x", type: "choice", options: "a\r\na" }, "Two options are the same."],
    [{ key: "x", label: "x", type: "date", options: "a" }, "Only a field of the type choice has options."],
    [{ key: "", label: "", type: "" }, "The key must be"],
  ])("%j is refused, and stays in the form", async (fields, message) => {
    const { post, store, shop } = await merchant([NOTE]);
    const refused = await post(FIELDS, { ...fields, personal: "no" });
    expect(refused.status).toBe(422);
    const html = await refused.text();
    expect(html).toContain(`<small id="field-error" class="field-error" role="alert">${message}`);
    expect(html).toContain(`name="key" value${fields.key === "" ? "" : `="${fields.key}"`} `);
    expect(html).toContain('<option value="no" selected>');
    expect(await store.fields.list(shop.id)).toHaveLength(1);
  });

  test("a field with values keeps its type, and its form does not offer another", async () => {
    const { all, shop, store, html, post } = await merchant([NOTE]);
    await apply(all.app, shop, [fieldValue(1, "note", "x")]);
    expect(await html(`${FIELDS}/edit/note`)).toContain('name="type" disabled');
    expect(led(await post(`${FIELDS}/edit/note`, { label: "Gift note", personal: "no" }))).toEqual([303, FIELDS]);
    expect(await store.fields.list(shop.id)).toMatchObject([{ label: "Gift note", type: "text", personal: false }]);
    const refused = await post(`${FIELDS}/edit/note`, { label: "Number", type: "number", personal: "no" });
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain("has values, so it keeps its type text");
  });

  test("an unknown field is 404", async () => {
    const { get, post } = await signedIn();
    for (const action of ["edit", "archive", "restore"])
      expect((await post(`${FIELDS}/${action}/none`, { label: "x", type: "text" })).status).toBe(404);
    expect((await get(`${FIELDS}/edit/none`)).status).toBe(404);
  });

  test("on a plan without access fields can be archived, and nothing else", async () => {
    const { html, post, path, store, shop } = await merchant([NOTE], "free");
    expect(await html(FIELDS)).toContain("<fieldset disabled>");
    expect((await post(FIELDS, { key: "x", label: "x", type: "text" })).status).toBe(403);
    expect((await post(`${FIELDS}/edit/note`, { label: "x" })).status).toBe(403);
    expect((await post(path, { "value.note": "x" })).status).toBe(403);
    expect(led(await post(`${FIELDS}/archive/note`))).toEqual([303, FIELDS]);
    expect((await post(`${FIELDS}/restore/note`)).status).toBe(403);
    expect(await store.fields.list(shop.id)).toMatchObject([{ label: "Note", archivedAt: START }]);
  });

  test("a script in a label, an option or a value is shown as text", async () => {
    const { all, shop, store, html, path } = await merchant([NOTE]);
    const field = { key: "x", label: SCRIPT, type: "choice", options: [SCRIPT] } as const;
    await store.fields.update(shop.id, (each) => addField(each, { ...field, options: [...field.options] }));
    await apply(all.app, shop, [fieldValue(1, "note", `</textarea>${SCRIPT}`), fieldValue(1, "x", SCRIPT)]);
    for (const page of [FIELDS, `${FIELDS}/edit/x`, path]) {
      expect(await html(page)).toContain(SHOWN_SCRIPT);
      expect(await html(page)).not.toContain("<script>");
    }
    await store.fields.update(shop.id, (each) => archiveField(each, "x", START));
    expect(await html(FIELDS)).not.toContain("<script>");
  });

  test("of another shop are neither shown nor changed", async () => {
    const { all, html, get, post, path } = await merchant();
    const { shop: other } = await all.addShop("beta.myshopify.com");
    await all.app.store.fields.update(other.id, (each) => addField(each, { ...NOTE, key: "theirs" }));
    expect(await html(FIELDS)).not.toContain("theirs");
    expect((await get(`${FIELDS}/edit/theirs`)).status).toBe(404);
    expect((await post(`${FIELDS}/archive/theirs`)).status).toBe(404);
    expect(await html(path)).not.toContain("theirs");
  });
});

describe("values of one subscription", () => {
  test.each(["1", " gid://shopify/SubscriptionContract/1 ", "internal"])("are found by %s", async (name) => {
    const { post, id, path } = await merchant();
    expect(led(await post(`${FIELDS}/values`, { subscription: name === "internal" ? id : name }))).toEqual([303, path]);
  });

  test.each([
    ["", "&quot;&quot; is not the id or the gid of a subscription."],
    ["gid://shopify/Order/1", "&quot;gid://shopify/Order/1&quot; is not the id or the gid of a subscription."],
    ["9", "There is no subscription 9."],
    [SCRIPT, `&quot;${SHOWN_SCRIPT}&quot; is not the id or the gid of a subscription.`],
  ])("%p is refused at its field", async (name, message) => {
    const { post } = await merchant();
    const refused = await post(`${FIELDS}/values`, { subscription: name });
    const html = await refused.text();
    expect(refused.status).toBe(422);
    expect(html).toContain(`role="alert">${message}</small>`);
    expect(html).toContain(`name="subscription" value${name === "" ? "" : `="${name.replaceAll("<", "&lt;")}"`} `);
  });

  test("are set together, and an empty text clears", async () => {
    const { html, post, path, values } = await merchant();
    const typed = { note: "a\r\nb", weight: " -2.5 ", gift: "false", until: "2028-02-29", size: "2" };
    expect(led(await post(path, changed(await html(path), typed)))).toEqual([303, path]);
    expect(await values()).toEqual({ note: "a\nb", weight: -2.5, gift: false, until: "2028-02-29", size: "2" });
    const page = await html(path);
    expect(page).toContain("<p>Saved.</p>");
    expect(page).toMatch(/<option value="10">10<\/option><option value="2" selected>/);
    await post(path, changed(page, { note: "", size: "", weight: "-2.5" }));
    expect(await values()).toEqual({ weight: -2.5, gift: false, until: "2028-02-29" });
  });

  test("a refused value is shown at its field with what was typed, and no value is saved", async () => {
    const { html, post, path, values } = await merchant();
    const typed = { note: "kept", weight: "heavy", until: "2026-02-30", gift: "maybe" };
    const refused = await post(path, changed(await html(path), typed));
    expect(refused.status).toBe(422);
    const page = await refused.text();
    expect(page).toContain("kept</textarea>");
    expect(page).toMatch(/aria-describedby="value-weight-error value-weight-help"[^>]* value="heavy"/);
    expect(page).toContain("The value of weight must be a number.");
    expect(page).toMatch(/name="value\.until"[^>]* type="text" value="2026-02-30"/);
    expect(page).toContain("The value of until must be a day like 2026-01-31.");
    expect(page).toContain('<option value="maybe" selected>');
    expect(await values()).toEqual({});
    await post(path, changed(page, { ...typed, weight: "1", until: "", gift: "" }));
    expect(await values()).toEqual({ note: "kept", weight: 1 });
  });

  test("a value that another request changed meanwhile stays", async () => {
    const { all, shop, html, post, path, values } = await merchant();
    const page = await html(path);
    await apply(all.app, shop, [fieldValue(1, "weight", 7)]);
    await post(path, changed(page, { note: "mine", weight: "", gift: "", until: "", size: "" }));
    expect(await values()).toEqual({ note: "mine", weight: 7 });
    await post(path, changed(await html(path), { weight: "7" }));
    expect(await html(path)).toContain("Nothing was changed.");
  });

  test("a stored option that is gone stays until it is changed", async () => {
    const { all, shop, store, html, post, path, values } = await merchant();
    await apply(all.app, shop, [fieldValue(1, "size", "10")]);
    await store.fields.update(shop.id, (each) => changeField(each, "size", { options: ["2"] }));
    const page = await html(path);
    expect(page).toContain('<option value="10" selected>10 (not an option)</option>');
    await post(path, changed(page, { size: "10", note: "x" }));
    expect(await values()).toEqual({ note: "x", size: "10" });
    await post(path, changed(await html(path), { size: "2" }));
    expect(await html(path)).not.toContain("not an option");
    expect(await values()).toEqual({ note: "x", size: "2" });
  });

  test("a field that was archived meanwhile refuses the whole form", async () => {
    const { store, shop, html, post, path, values } = await merchant();
    const page = await html(path);
    const { list } = store.fields;
    let lists = 0;
    store.fields.list = async (id) => {
      lists += 1;
      if (lists === 2) await store.fields.update(shop.id, (each) => archiveField(each, "note", START));
      return list(id);
    };
    const refused = await post(path, changed(page, { note: "x", weight: "1" }));
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain('id="values-error"');
    expect(await values()).toEqual({});
  });

  test("a changed value of a field that was archived since the page was shown refuses the whole form", async () => {
    const { store, shop, html, post, path, values } = await merchant();
    const page = await html(path);
    await store.fields.update(shop.id, (each) => archiveField(each, "note", START));
    const refused = await post(path, changed(page, { note: "x", weight: "1" }));
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain("The field note is archived, so nothing was saved.");
    expect(await values()).toEqual({});
    expect(led(await post(path, changed(page, { weight: "1" })))).toEqual([303, path]);
    expect(await values()).toEqual({ weight: 1 });
  });

  test("50 texts of 1,024 characters are saved in one form", async () => {
    const fields = Array.from({ length: 50 }, (_, at): NewField => ({ ...NOTE, key: `note_${at}` }));
    const { html, post, path, values } = await merchant(fields);
    const typed = Object.fromEntries(fields.map(({ key }) => [key, "😀".repeat(1_024)]));
    expect(led(await post(path, changed(await html(path), typed)))).toEqual([303, path]);
    expect(await values()).toEqual(typed);
  });

  test("a look at personal values is in the audit list, and a look at other values is not", async () => {
    const { store, shop, all, html, path } = await merchant();
    const looks = async () =>
      (await store.audit.list(shop.id, { action: "person.shown" }, {}, 9)).map(({ subject }) => subject);
    await apply(all.app, shop, [fieldValue(1, "weight", 1)]);
    await html(path);
    expect(await looks()).toEqual([]);
    await apply(all.app, shop, [fieldValue(1, "note", "is in hospital")]);
    expect(await html(path)).toContain("is in hospital");
    expect(await looks()).toEqual(["gid://shopify/SubscriptionContract/1"]);
  });

  test("an unknown subscription is 404", async () => {
    const { get } = await merchant();
    expect((await get(`${FIELDS}/values/sub_${"a".repeat(24)}`)).status).toBe(404);
  });
});
