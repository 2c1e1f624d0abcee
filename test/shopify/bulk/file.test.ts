import { describe, expect, test } from "bun:test";
import { nextTurn } from "../../../src/lib/waits.ts";
import { BulkFailure, type FileServices, readFileBytes } from "../../../src/shopify/bulk/file-bytes.ts";
import { readObjects } from "../../../src/shopify/bulk/result-file.ts";
import { afterTest } from "../../support/cleanup.ts";
import { FileHost } from "../../support/platform/file-host.ts";

const LINES = Array.from({ length: 2_000 }, (_, n) => JSON.stringify({ id: `gid://shopify/Customer/${n}`, name: "ä" }));

async function host(text = `${LINES.join("\n")}\n`) {
  const files = new FileHost((what) => {
    throw new Error(what);
  });
  await files.start();
  afterTest(() => files.stop());
  const writer = files.create();
  await writer.write(text);
  return { files, url: files.urlOf(await writer.close()), size: Buffer.byteLength(text) };
}

/** Reads a file to its end. @returns the ids of its objects, the positions at which batches end, and the waits */
async function read(url: string, from = 0, given: Partial<FileServices> & { byteCount?: number } = {}) {
  const waits: number[] = [];
  let asked = 0;
  const sleep = async (waitMs: number) => void waits.push(waitMs);
  const addressOf = async () => {
    asked += 1;
    return { url, byteCount: given.byteCount };
  };
  const chunks = readFileBytes({ fetch, sleep, allowHttp: true, ...given }, addressOf, from);
  const ids: unknown[] = [];
  const ends: number[] = [];
  for await (const { objects, end } of readObjects(chunks, from)) {
    ids.push(...objects.map(({ id }) => id));
    ends.push(end);
  }
  return { ids, ends, waits, asked };
}

/** Starts a host that gives these answers, one for each request. */
function answering(...answers: (() => Response)[]): string {
  let n = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => answers[n++ % answers.length]?.() ?? new Response(null, { status: 500 }),
  });
  afterTest(() => server.stop(true));
  return server.url.href;
}

const ALL = LINES.map((_, n) => `gid://shopify/Customer/${n}`);

describe("a file", () => {
  test("is read in batches, each of which ends with a line", async () => {
    const { url, size } = await host();
    const { ids, ends } = await read(url);
    expect(ids).toEqual(ALL);
    expect(ends).toHaveLength(4);
    expect(ends.at(-1)).toBe(size);
    const rest = await read(url, ends[1]);
    expect(rest.ids).toEqual(ALL.slice(1_000));
    expect((await read(url, size)).ids).toEqual([]);
  });

  test.each([
    ["no newline at its end", '{"id":1}\n{"id":2}', [1, 2]],
    ["empty lines", '\n{"id":1}\r\n\n{"id":2}\n\n', [1, 2]],
    ["nothing", "", []],
  ])("can have %s", async (_, text, expected) => {
    const { url, size } = await host(text);
    const { ids, ends } = await read(url);
    expect(ids).toEqual(expected);
    expect(ends.at(-1) ?? 0).toBe(size);
  });

  test.each([false, true])(
    "whose download breaks off is read on (the host ignores ranges: %p)",
    async (ignoresRanges) => {
      const { files, url } = await host();
      Object.assign(files.behaviour, {
        ignoresRanges,
        bytesPerSecond: 400_000,
        cuts: { downloads: 3, afterBytes: 40_000 },
      });
      const { ids, waits } = await read(url);
      expect(ids).toEqual(ALL);
      expect(waits.length).toBeGreaterThan(0);
      expect(files.downloads.length).toBeGreaterThan(2);
      const ranges = files.downloads.map(({ range }) => range);
      expect(ranges[0]).toBe("bytes=0-");
      expect(new Set(ranges).size).toBeGreaterThan(1);
    },
  );

  test("is read to its end, however often the download breaks off", async () => {
    const { files, url } = await host();
    Object.assign(files.behaviour, { bytesPerSecond: 400_000, cuts: { downloads: 9, afterBytes: 10_000 } });
    const { ids, waits } = await read(url);
    expect(ids).toEqual(ALL);
    expect(waits.length).toBeGreaterThan(6);
  });

  test("is read to the size that its host names, even if the platform names a smaller size", async () => {
    const part = (begin: number, id: number) => () =>
      new Response(`{"id":${id}}\n`, { status: 206, headers: { "Content-Range": `bytes ${begin}-17/18` } });
    expect((await read(answering(part(0, 1), part(9, 2)), 0, { byteCount: 9 })).ids).toEqual([1, 2]);
  });

  test("is read from a slow host, however long it takes; a silent host is given up", async () => {
    const { files, url } = await host(LINES.slice(0, 100).join("\n"));
    files.behaviour.bytesPerSecond = 20_000;
    expect((await read(url, 0, { idleTimeoutMs: 200 })).ids).toHaveLength(100);
    const silent = answering(() => new Response(new ReadableStream({ pull: () => new Promise(() => {}) })));
    await expect(read(silent, 0, { idleTimeoutMs: 20 })).rejects.toThrow("the host of the file sends nothing");
  });

  test.each([
    ["again at the same address after too many requests", 429, 1],
    ["at a new address after the host refused the old one", 403, 2],
  ])("is requested %s, and while the host is overloaded", async (_, status, asked) => {
    const url = answering(
      () => new Response(null, { status }),
      () => new Response(null, { status: 503 }),
      () => new Response('{"id":1}'),
    );
    expect(await read(url)).toEqual({ ids: [1], ends: [8], waits: [1_000, 2_000], asked });
  });
});

describe("a file is given up", () => {
  const cases: [what: string, answer: () => Response, reason: string][] = [
    ["that is never sent", () => new Response(null, { status: 500 }), "HTTP 500"],
    [
      "that moved: redirects are not followed",
      () => new Response(null, { status: 302, headers: { Location: "http://127.0.0.1:1/" } }),
      "HTTP 302",
    ],
    [
      "of which its host names another size",
      () => new Response(null, { status: 416, headers: { "Content-Range": "bytes */9" } }),
      "HTTP 416",
    ],
    ["with a line that is too long", () => new Response(`{"a":"${"x".repeat(1024 * 1024)}"}\n`), "too long"],
    ["with a line that is no object", () => new Response('{"id":1}\n[1]\n'), "not a JSON object"],
    ["that is no text", () => new Response(new Uint8Array([0, 1, 2, 10])), "not a JSON object"],
    [
      "that is too large",
      () => new Response("{}", { status: 206, headers: { "Content-Range": "bytes 0-1/99999999999999" } }),
      "too large",
    ],
    [
      "of which another part is sent",
      () => new Response("{}", { status: 206, headers: { "Content-Range": "bytes 7-8/9" } }),
      "the wrong part",
    ],
  ];

  test.each(cases)("%s", async (_, answer, reason) => {
    const failure = await read(answering(answer)).catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(BulkFailure);
    expect((failure as Error).message).toContain(reason);
  });

  test("that ends before the platform's size, if its host names no size", async () => {
    async function pull(controller: ReadableStreamDefaultController<string>): Promise<void> {
      controller.enqueue('{"id":1}\n');
      await nextTurn();
      controller.close();
    }
    const url = answering(() => new Response(new ReadableStream({ pull })));
    expect((await read(url)).ids).toEqual([1]);
    await expect(read(url, 0, { byteCount: 100 })).rejects.toThrow("was interrupted");
  });

  test("of which its host has less than the platform says", async () => {
    const readOf = (text: string) => {
      const url = answering(() => new Response(text));
      return read(url, 0, { byteCount: 100 });
    };
    await expect(readOf('{"id":1}\n')).rejects.toThrow("was interrupted");
    await expect(readOf("")).rejects.toThrow(BulkFailure);
  });

  test("that is shorter at its host than the platform says, if the host answers that no bytes are left", async () => {
    const { url, size } = await host();
    await expect(read(url, 0, { byteCount: size + 1 })).rejects.toThrow("was interrupted");
    await expect(read(url, size, { byteCount: size + 1 })).rejects.toThrow(BulkFailure);
  });

  test("after six tries, with growing waits", async () => {
    const { files, url } = await host();
    files.behaviour.status = 500;
    const waits: number[] = [];
    const sleep = async (waitMs: number) => void waits.push(waitMs);
    await expect(read(url, 0, { sleep })).rejects.toThrow("HTTP 500");
    expect([files.downloads.length, waits]).toEqual([6, [1_000, 2_000, 4_000, 8_000, 16_000]]);
  });

  test.each(["http://127.0.0.1:1/a", "file:///etc/passwd", "no address"])("at the address %s", async (url) => {
    await expect(read(url, 0, { allowHttp: false })).rejects.toThrow("does not begin with https://");
  });
});
