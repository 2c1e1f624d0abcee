import { describe, expect, test } from "bun:test";
import { outline } from "../../src/docs/outline.ts";
import { API_ERROR_CODES } from "../../src/domain/error.ts";
import { search, wordsOf } from "../../src/http/docs/search.ts";
import { PAGES, TOPICS } from "../../src/http/docs/site.ts";
import { createDocument, respondDocument } from "../../src/http/documents.ts";
import { openApiDocument } from "../../src/http/openapi/document.ts";
import { testApp } from "../support/app.ts";

const PATHS = ["/docs", ...PAGES.map(({ path }) => path), "/docs/search?q=cursor"];

type Request = Awaited<ReturnType<typeof testApp>>["request"];

async function html(request: Request, path: string): Promise<string> {
  return (await request(path)).text();
}

/** The values of an attribute in a page. */
function values(text: string, attribute: string): string[] {
  return [...text.matchAll(new RegExp(` ${attribute}="([^"]*)"`, "g"))].map(([, value = ""]) =>
    value.replaceAll("&amp;", "&"),
  );
}

test.each(PATHS)("%s needs no key, has no script but ours, and is read again only if it changed", async (path) => {
  const { request } = await testApp();
  const response = await request(path);
  const { "x-request-id": _, etag = "", ...headers } = response.headers.toJSON() as Record<string, string>;
  expect({ status: response.status, headers }).toEqual({
    status: 200,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy":
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      "access-control-allow-origin": "*",
      "cache-control": "no-cache",
      vary: "Accept-Encoding",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    },
  });
  const text = await response.text();
  expect(text).toStartWith('<!doctype html><html lang="en">');
  expect(text).not.toMatch(
    /<script(?! src="\/docs\/docs\.js\?v=\w+"><)|<style|<[^>]* style=|<[^>]* on\w+=|<iframe|<object/i,
  );
  expect(etag).toMatch(/^W\/"[0-9a-f]{16}"$/);
  for (const known of [etag, etag.slice(2), `"other", ${etag}`, "*"]) {
    const again = await request(path, { headers: { "If-None-Match": known } });
    expect([known, again.status, await again.text(), again.headers.get("etag")]).toEqual([known, 304, "", etag]);
  }
  expect((await request(path, { headers: { "If-None-Match": '"other"' } })).status).toBe(200);
});

test.each([
  ["zstd, gzip", "zstd", Bun.zstdDecompressSync],
  ["gzip", "gzip", Bun.gunzipSync],
  ["br", null, (bytes: Uint8Array<ArrayBuffer>) => bytes],
])("a page is compressed for a browser that accepts %s", async (accepted, encoding, decompress) => {
  const { request } = await testApp();
  const response = await request("/docs/api", { headers: { "Accept-Encoding": accepted } });
  expect(response.headers.get("content-encoding")).toBe(encoding);
  const text = Buffer.from(decompress(await response.bytes())).toString();
  expect(text).toBe(await html(request, "/docs/api"));
});

test.each([
  [1023, null],
  [1024, "gzip"],
])("a text of %d bytes is sent with the encoding %p: a small one gains nothing", (length, encoding) => {
  const request = new Request("http://sds.test/", { headers: { "Accept-Encoding": "gzip" } });
  const { headers } = respondDocument(request, createDocument("x".repeat(length)), {});
  expect(headers.get("content-encoding")).toBe(encoding);
});

test("every link leads to a page that is served and to a heading in it", async () => {
  const { request } = await testApp();
  const pages = new Map(await Promise.all(PATHS.map(async (path) => [path, await html(request, path)] as const)));
  const broken: string[] = [];
  for (const [path, text] of pages)
    for (const href of values(text, "href")) {
      if (/^(https:\/\/|data:,)/.test(href)) continue;
      const [target = "", anchor] = href.startsWith("#") ? [path, href.slice(1)] : href.split("#");
      const found =
        pages.get(target) ?? ((await request(target)).status === 200 ? await html(request, target) : undefined);
      if (found === undefined) broken.push(`${path}: ${href}`);
      else if (anchor !== undefined && !values(found, "id").includes(anchor)) broken.push(`${path}: ${href}`);
    }
  expect(broken).toEqual([]);
  // The other tests of pages rely on `PAGES` being complete.
  expect(pages.size).toBeGreaterThan(12);
});

test("no link and no text of a guide is lost", async () => {
  const { request } = await testApp();
  for (const { topic, path, text: textOf } of PAGES) {
    const text = textOf();
    const page = await html(request, path);
    const main = page.slice(page.indexOf("<h1"), page.indexOf("<footer"));
    const prose = text.replaceAll(/^```[\s\S]*?^```/gm, "");
    // Each picture is on the page twice, once for each theme.
    const targets = values(main, "href").length + values(main, "src").length / 2;
    expect([topic, targets]).toEqual([topic, [...prose.matchAll(/\]\(/g)].length]);
    expect([topic, values(main, "id")]).toEqual([topic, outline(text).map(({ anchor }) => anchor)]);
    const shown = wordsIn(
      main
        .replaceAll(/<\/?span[^>]*>/g, "")
        .replaceAll(/<img [^>]*alt="([^"]*)"[^>]*>/g, " $1 ")
        .replaceAll(/<[^>]*>/g, " ")
        .replaceAll(/&\w+;|&#\w+;/g, " "),
    );
    // If the text of a link is a file name, the page shows the title of the linked page instead.
    const titled = text.replaceAll(/\[([\w-]+\.md)\]\(\1[^)]*\)/g, " ");
    const written = wordsIn(titled.replaceAll(/^(?:```\w*$| *\d+\. )/gm, " ").replaceAll(/\]\([^)]*\)/g, " "));
    expect([topic, written.filter((word) => !shown.has(word)).slice(0, 5)]).toEqual([topic, []]);
  }
});

function wordsIn(text: string): Set<string> & { filter: (keep: (word: string) => boolean) => string[] } {
  const words = new Set(text.match(/[\p{L}\p{N}]+/gu));
  return Object.assign(words, { filter: (keep: (word: string) => boolean) => [...words].filter(keep) });
}

test("two headings of a page never have one anchor", () => {
  for (const { topic, text } of PAGES) {
    const anchors = outline(text()).map(({ anchor }) => anchor);
    expect([topic, new Set(anchors).size]).toEqual([topic, anchors.length]);
  }
});

test("every topic has a text, and a section with its own topic begins with its heading", () => {
  expect(TOPICS.filter(({ text }) => !/^#{1,3} /.test(text())).map(({ topic }) => topic)).toEqual([]);
});

describe("the reference", () => {
  const document = openApiDocument("/");
  const reference = PAGES.filter(({ topic }) => topic.startsWith("reference-"));
  const all = reference.map(({ text }) => text()).join("\n");

  test("has every operation and every webhook of the OpenAPI document, once", () => {
    const operations = [document.paths, document.webhooks].flatMap((each) =>
      Object.values(each).flatMap(Object.values),
    );
    const titles = reference.flatMap(({ text }) => outline(text()).map(({ title }) => title));
    for (const { summary } of operations)
      expect([summary, titles.filter((title) => title === summary).length]).toEqual([summary, 1]);
    expect(operations.length).toBeGreaterThan(16);
  });

  test("has only codes of errors that exist", () => {
    const codes = [...all.matchAll(/^\| [45]\d\d \| `([^`]*)` \|/gm)].map(([, code]) => code);
    expect(codes.length).toBeGreaterThan(30);
    expect(codes.filter((code) => !(API_ERROR_CODES as readonly unknown[]).includes(code))).toEqual([]);
  });

  test("has every schema, parameter and field of the OpenAPI document", () => {
    const { schemas } = document.components;
    const missing = Object.entries(schemas).flatMap(([name, schema]) =>
      Object.keys(schema.properties ?? {})
        .filter((field) => !all.includes(`| \`${field}\` |`) && !["data", "error"].includes(field))
        .map((field) => `${name}.${field}`),
    );
    expect(missing).toEqual([]);
    const text = JSON.stringify([document.paths, document.webhooks]);
    const parameters = new Set([...text.matchAll(/"name":"([^"]+)","in"/g)].map(([, name = ""]) => name));
    expect([...parameters].filter((name) => !all.includes(`| \`${name}\` |`))).toEqual([]);
  });
});

test("browsers cache the style for ever under its version, and request a new version", async () => {
  const { request } = await testApp();
  const [path = ""] = values(await html(request, "/docs"), "href").filter((href) => href.includes(".css"));
  const caching = async (at: string) => {
    const response = await request(at);
    return [response.status, response.headers.get("content-type"), response.headers.get("cache-control")];
  };
  const css = "text/css; charset=utf-8";
  expect((await request(path)).headers.get("access-control-allow-origin")).toBe("*");
  expect(await caching(path)).toEqual([200, css, "public, max-age=31536000, immutable"]);
  expect(await caching("/docs/docs.css?v=older")).toEqual([200, css, "no-cache"]);
});

test("the pictures of the guides are served", async () => {
  const { request } = await testApp();
  const pictures = values(await html(request, "/docs/operating"), "src").filter((src) => src.endsWith(".webp"));
  expect(pictures).toHaveLength(6);
  for (const path of pictures) {
    const response = await request(path);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "image/webp"]);
    expect(Buffer.from(await response.bytes()).toString("latin1", 8, 12)).toBe("WEBP");
  }
});

describe("search", () => {
  const results = (text: string) => text.slice(text.indexOf("<h1>Search"), text.indexOf("</main>"));

  test("finds the sections with all words, those with the words in their heading first", async () => {
    const { request } = await testApp();
    const found = results(await html(request, "/docs/search?q=checkpoint+RESTORE"));
    expect(found).toContain('href="/docs/copies#what-you-can-rely-on"');
    expect(found).toContain("<mark>checkpoint</mark>");
    const [first] = values(results(await html(request, "/docs/search?q=authentication")), "href");
    expect(first).toBe("/docs/api#authentication");
  });

  test("finds at most twenty sections", () => {
    expect(search("sds")).toHaveLength(20);
  });

  test("ignores stop words, unless the query has no other words", () => {
    expect(wordsOf("How to do it?")).toEqual(["how", "to", "do", "it"]);
    expect(wordsOf("How to rotate the key?")).toEqual(["rotate", "key"]);
  });

  test("uses only the first eight words", () => {
    expect(wordsOf("a1 a2 a3 a4 a5 a6 a7 a8 a9")).toEqual(["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"]);
  });

  test.each(["cursor", "signature", "sds", "the"])(
    "shows a part of each section for %s, and where it was cut",
    (word) => {
      const hits = search(word);
      expect(hits.length).toBeGreaterThan(3);
      for (const { page, title, excerpt } of hits) {
        expect(`${page} ${title} ${excerpt}`.toLowerCase()).toContain(word);
        expect(excerpt.length).toBeLessThanOrEqual("… ".length + 160 + " …".length);
        expect(excerpt).toMatch(/^(… \S|[^… ]).*(\S …|[^… ])$/s);
      }
    },
  );

  test("finds no section for a query without words", () => {
    expect(search(" ? ")).toEqual([]);
  });

  test("says so if it finds nothing, or if there is nothing to search for", async () => {
    const { request } = await testApp();
    expect(results(await html(request, "/docs/search?q=xyzzy"))).toContain("No section has all words of “xyzzy”");
    for (const path of ["/docs/search", "/docs/search?q=", "/docs/search?q=%20"])
      expect(results(await html(request, path))).toContain("Type some words");
  });

  test.each([
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onfocus='alert(1)",
    "a.*(b[c\\",
    "\u0000\ufffd\ud800",
    "%",
    "(".repeat(5_000),
    "a ".repeat(5_000),
  ])("shows %p as text", async (query) => {
    const { request } = await testApp();
    const response = await request(`/docs/search?q=${encodeURIComponent(query.toWellFormed())}`);
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).not.toMatch(/<script(?! src="\/docs\/docs\.js\?v=\w+"><)|<img|<input[^>]* on\w+=/);
    expect(text.length).toBeLessThan(40_000);
  });
});

test.each([
  ["/", "Subscription Data Service"],
  ["/docs/unknown", "There is no page here"],
  ["/admin/unknown", "There is no page here"],
])("a browser gets a page at %s, another client JSON", async (path, title) => {
  const { request } = await testApp();
  const page = await request(path, { headers: { Accept: "text/html,application/xhtml+xml,*/*;q=0.8" } });
  expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  expect(await page.text()).toContain(`<h1>${title}</h1>`);
  for (const init of [{}, { headers: { Accept: "*/*" } }, { method: "POST", headers: { Accept: "text/html" } }]) {
    const other = await request(path, init);
    expect([other.status, other.headers.get("content-type")]).toEqual([404, "application/json"]);
  }
});
