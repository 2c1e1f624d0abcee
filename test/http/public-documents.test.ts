import { expect, test } from "bun:test";
import { join } from "node:path";
import { version as packageVersion } from "../../package.json";
import { testApp } from "../support/app.ts";
import { expectStored } from "../support/stored-text.ts";
import { outlineOf, pageFrom } from "./outline.ts";

const openApp = () => testApp({ SDS_PUBLIC_URL: "https://sds.example.com" });

function storedPath(file: string): string {
  return join(import.meta.dir, "stored", file);
}

test("the OpenAPI document is the stored one", async () => {
  const { request } = await openApp();
  const { info, ...document } = (await (await request("/openapi.json")).json()) as { info: object };
  const { version, ...about } = info as { version: string };
  expect(version).toBe(packageVersion);
  // The style check would format a file whose name ends in .json.
  await expectStored(storedPath("openapi.txt"), `${JSON.stringify({ info: about, ...document }, null, 1)}\n`);
});

test.each(["orders", "webhooks", "intake"])("the reference of %s is the stored one", async (name) => {
  const { request } = await openApp();
  const answer = await request(`/docs/reference-${name}.md`);
  expect(answer.status).toBe(200);
  await expectStored(storedPath(`reference-${name}.txt`), await answer.text());
});

test("the home, a reference page, the search and a missing page have the stored outlines", async () => {
  const paths = ["/docs", "/docs/reference-shop", "/docs/search", "/docs/search?q=xyzzy", "/docs/missing", "/"];
  const { request } = await openApp();
  const pages = [];
  for (const [index, path] of paths.entries()) {
    const answer = await request(path, { headers: { Accept: "text/html" } });
    const html = await answer.text();
    pages.push(`== ${answer.status} ${path}\n${outlineOf(index === 0 ? html : pageFrom(html, "h1"))}\n`);
  }
  await expectStored(storedPath("docs.txt"), pages.join("\n"));
});
