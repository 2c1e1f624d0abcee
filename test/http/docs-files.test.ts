import { expect, test } from "bun:test";
import { join } from "node:path";
import { testApp } from "../support/app.ts";

const DOCS = join(import.meta.dir, "../../src/docs");

test.each([
  ["/docs/airbyte.yaml", "airbyte.yaml", "application/yaml; charset=utf-8"],
  ["/docs/puller.py", "python/puller.py", "text/plain; charset=utf-8"],
  ["/docs/receiver.py", "python/receiver.py", "text/plain; charset=utf-8"],
])("GET %s gives the file, without a key", async (path, file, type) => {
  const { request } = await testApp();
  const response = await request(path);
  expect({ status: response.status, type: response.headers.get("content-type"), text: await response.text() }).toEqual({
    status: 200,
    type,
    text: await Bun.file(join(DOCS, file)).text(),
  });
  const known = { "If-None-Match": response.headers.get("etag") ?? "" };
  expect((await request(path, { headers: known })).status).toBe(304);
  expect((await request(path, { headers: { "If-None-Match": '"another"' } })).status).toBe(200);
  expect((await request(path, { method: "POST" })).headers.get("allow")).toBe("GET, HEAD");
});
