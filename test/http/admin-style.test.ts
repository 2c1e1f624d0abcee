import { expect, test } from "bun:test";
import { led, signedIn } from "../support/signed-in.ts";

const STYLE = "/admin/style";
const PREVIEW = `${STYLE}/preview`;
const SOURCE = '.button { color: red }\n.title::before { content: "</style><script>" }\n';
const SERVED = "/storefront/alpha.myshopify.com/widget.css";
const ATTACKS = [
  ["\n  @import 'https://evil.example/x.css';", "Line 2, column 3: The rule @import is not allowed"],
  [".a { background: url(https://evil.example/) }", "Line 1, column "],
  ["</textarea><script>alert(1)</script>", "Line 1, column "],
  [`.a { color: red }${" ".repeat(70_000)}`, "This style is too large"],
] as const;

/** The CSS of a preview's second stylesheet. */
function styleOf(html: string): string {
  const [, second = ""] = [...html.matchAll(/href="data:text\/css;charset=utf-8;base64,([^"]*)"/g)].map(
    ([, base64 = ""]) => base64,
  );
  return Buffer.from(second, "base64").toString();
}

test("a style is saved, served, shown and removed after a question", async () => {
  const { all, html, post, store, shop } = await signedIn({ SDS_PUBLIC_URL: "https://sds.example.com" });
  expect(await html(STYLE)).toContain(`<code id="address">https://sds.example.com${SERVED}</code>`);
  expect(led(await post(STYLE, { source: SOURCE.replaceAll("\n", "\r\n") }))).toEqual([303, STYLE]);
  expect((await store.styles.find(shop.id))?.source).toBe(SOURCE);
  const page = await html(STYLE);
  expect(page).toContain("<p>Saved. Visitors may see the former style for up to a day.</p>");
  expect(page).toContain(
    ".button { color: red }\n.title::before { content: &quot;&lt;/style>&lt;script>&quot; }\n</textarea>",
  );
  const served = await (await all.request(SERVED)).text();
  expect(served).toContain(".sds-widget:scope .button{color:red;}");
  expect(styleOf(await html(PREVIEW))).toBe(served);

  expect(await html(`${STYLE}/clear`)).toContain("This can't be undone.");
  expect(await store.styles.find(shop.id)).toBeDefined();
  expect(led(await post(`${STYLE}/clear`))).toEqual([303, STYLE]);
  expect(await (await all.request(SERVED)).text()).toBe("");
  expect(await html(STYLE)).not.toContain(`${STYLE}/clear`);
});

test.each(ATTACKS)(
  "%#. a refused style stays in its field with the reason, and nothing is saved",
  async (source, reason) => {
    const { post, store, shop } = await signedIn();
    await post(STYLE, { source: SOURCE });
    const refused = await post(STYLE, { source });
    expect(refused.status).toBe(422);
    const html = await refused.text();
    expect(html).toContain('aria-invalid="true" aria-describedby="source-error source-help"');
    expect(html).toMatch(/<small id="source-error" class="field-error" role="alert">(Line \d+, column \d+: )?/);
    expect(html).toContain(reason);
    expect(html).toContain(`\n${source.replaceAll("<", "&lt;")}</textarea>`);
    expect((await store.styles.find(shop.id))?.source).toBe(SOURCE);
  },
);

test("a preview of what is typed saves nothing, and names the reason of a refusal", async () => {
  const { post, store, shop, html } = await signedIn();
  expect(styleOf(await html(PREVIEW))).toBe("");
  const preview = await post(PREVIEW, { source: SOURCE });
  expect(preview.status).toBe(200);
  expect(styleOf(await preview.text())).toContain(".sds-widget:scope .button{color:red;}");
  expect(await store.styles.find(shop.id)).toBeUndefined();
  const refused = await (await post(PREVIEW, { source: ATTACKS[0][0] })).text();
  expect(refused).toContain("This style is refused. Line 2, column 3: The rule @import is not allowed");
  expect(styleOf(refused)).toBe("");
  expect((await post(PREVIEW, { source: SOURCE, csrf: "wrong" })).status).toBe(403);
});

test("the frame may do nothing, and pages may have only our frames", async () => {
  const { get } = await signedIn();
  expect((await get(PREVIEW)).headers.get("content-security-policy")).toBe(
    "default-src 'none'; style-src data:; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; " +
      "sandbox; frame-ancestors 'self'",
  );
  expect((await get(STYLE)).headers.get("content-security-policy")).toBe(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
      "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  );
});

test("on a plan without access a style can be removed, and not saved", async () => {
  const { html, post, store, shop } = await signedIn({}, "free");
  await store.styles.set(shop.id, { source: SOURCE, hash: "a" });
  expect(await html(STYLE)).toContain("<fieldset disabled>");
  expect((await post(STYLE, { source: ".a { color: red }" })).status).toBe(403);
  expect((await store.styles.find(shop.id))?.source).toBe(SOURCE);
  expect(led(await post(`${STYLE}/clear`))).toEqual([303, STYLE]);
  expect(await store.styles.find(shop.id)).toBeUndefined();
});

test("64 KiB of line ends are saved", async () => {
  const { post, store, shop } = await signedIn();
  const source = `.a {}${"\r\n".repeat(65_531)}`;
  expect(led(await post(STYLE, { source }))).toEqual([303, STYLE]);
  expect((await store.styles.find(shop.id))?.source).toHaveLength(65_536);
});
