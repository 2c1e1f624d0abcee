import { expect, jest, test } from "bun:test";
import { createConnection } from "node:net";
import { createLargePages } from "../../../src/http/read/large-page.ts";
import { afterTest } from "../../support/cleanup.ts";
import { eventually } from "../../support/eventually.ts";

const PAGE_BYTES = 24 * 1024 * 1024;

test("a client that reads a page too slowly is cut off, and its bytes no longer count", async () => {
  jest.useFakeTimers();
  afterTest(() => jest.useRealTimers());
  const pages = createLargePages({ maxBytes: PAGE_BYTES, maxBytesOfShop: PAGE_BYTES, sendingTimeoutMs: 300 });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => pages.respond(request, 1, new Uint8Array(PAGE_BYTES), {}),
  });
  afterTest(() => server.stop(true));
  const client = createConnection(server.port ?? 0, "127.0.0.1");
  client.on("error", () => undefined);
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  // The client reads the first bytes and then stops.
  const begun = Promise.withResolvers<void>();
  client.once("readable", () => begun.resolve());
  await begun.promise;
  jest.advanceTimersByTime(299);
  expect((await fetch(server.url)).status).toBe(503);
  jest.advanceTimersByTime(1);
  jest.useRealTimers();
  await eventually(async () => (await fetch(server.url)).status === 200);
  client.destroy();
});

test.each(["before the answer", "after the answer"])(
  "a page of a client that went away %s is freed at once",
  async (when) => {
    jest.useFakeTimers();
    afterTest(() => jest.useRealTimers());
    const pages = createLargePages({ maxBytes: PAGE_BYTES, maxBytesOfShop: PAGE_BYTES, sendingTimeoutMs: 1 });
    const away = new AbortController();
    const request = new Request("http://sds.example.test/", { signal: away.signal });
    if (when === "before the answer") away.abort();
    const answer = await pages.respond(request, 1, new Uint8Array(PAGE_BYTES), {});
    away.abort();
    expect((await pages.respond(new Request(request.url), 1, new Uint8Array(PAGE_BYTES), {})).status).toBe(200);
    // The page is freed, so the time limit for sending must not end its stream with an error.
    jest.advanceTimersByTime(2);
    expect((await answer.bytes()).length).toBe(PAGE_BYTES);
  },
);

test("a page counts in full while it is compressed, and with its compressed size after that", async () => {
  const pages = createLargePages({ maxBytes: PAGE_BYTES, maxBytesOfShop: PAGE_BYTES });
  const ask = () => new Request("http://sds.example.test/");
  const compressed = pages.respond(ask(), 1, new Uint8Array(PAGE_BYTES), {}, "zstd");
  expect((await pages.respond(ask(), 1, new Uint8Array(PAGE_BYTES), {})).status).toBe(503);
  const answer = await compressed;
  expect(answer.headers.get("content-encoding")).toBe("zstd");
  expect((await pages.respond(ask(), 1, new Uint8Array(PAGE_BYTES / 2), {})).status).toBe(200);
  expect(Bun.zstdDecompressSync(await answer.bytes()).length).toBe(PAGE_BYTES);
});
