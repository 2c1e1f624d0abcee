import { expect, test } from "bun:test";
import { join } from "node:path";
import { PAGES } from "../../src/http/docs/site.ts";
import { testApp } from "../support/app.ts";
import { programNamed } from "../support/samples.ts";

const DOCS = join(import.meta.dir, "../../src/docs");
const TEXT = "text/plain; charset=utf-8";
const MARKDOWN = "text/markdown; charset=utf-8";

test.each([
  ["/docs/airbyte.yaml", "application/yaml; charset=utf-8", await Bun.file(join(DOCS, "airbyte.yaml")).text()],
  ["/docs/alerts.yaml", "application/yaml; charset=utf-8", await Bun.file(join(DOCS, "alerts.yaml")).text()],
  ["/docs/alerts.test.yaml", "application/yaml; charset=utf-8", await Bun.file(join(DOCS, "alerts.test.yaml")).text()],
  [
    "/docs/dashboard.json",
    "application/json",
    JSON.stringify(await Bun.file(join(DOCS, "dashboard.json")).json(), null, 2),
  ],
  ["/docs/copy.mjs", TEXT, programNamed("copy.mjs")],
  ["/docs/puller.py", TEXT, programNamed("puller.py")],
  ["/docs/receiver.mjs", TEXT, programNamed("receiver.mjs")],
  ["/docs/receiver.py", TEXT, programNamed("receiver.py")],
  ["/docs/copies.md", MARKDOWN, await Bun.file(join(DOCS, "copies.md")).text()],
])("GET %s gives the file, without a key", async (path, type, text) => {
  const { request } = await testApp();
  const response = await request(path);
  expect({ status: response.status, type: response.headers.get("content-type"), text: await response.text() }).toEqual({
    status: 200,
    type,
    text,
  });
  const known = { "If-None-Match": response.headers.get("etag") ?? "" };
  expect((await request(path, { headers: known })).status).toBe(304);
  expect((await request(path, { headers: { "If-None-Match": '"another"' } })).status).toBe(200);
  expect((await request(path, { method: "POST" })).headers.get("allow")).toBe("GET, HEAD");
});

test("every page exists in Markdown, and a list for programs names every page", async () => {
  const { request } = await testApp();
  const list = await (await request("/docs/llms.txt")).text();
  const paths = [...list.matchAll(/\]\((\S+)\)/g)].map(([, path = ""]) => path);
  expect(paths).toEqual(PAGES.map(({ path }) => `${path}.md`));
  // llmstxt.org: a title, a quote, then lists below headings of the second level.
  expect(list).toMatch(/^# .+\n\n> .+\n(\n## .+\n\n(- \[.+\]\(.+\): .+\n)+)+$/);
  for (const path of paths) {
    const response = await request(path);
    expect([path, response.status, await response.text()]).toEqual([path, 200, expect.stringMatching(/^# /)]);
  }
});
