import { describe, expect, test } from "bun:test";
import { type Body, createBodyDropper, createBodyReader } from "../../src/http/body.ts";
import { nextTurn } from "../../src/lib/waits.ts";
import { afterTest } from "../support/cleanup.ts";
import { exchangeInTurn } from "../support/raw-http.ts";

const MAX_BYTES = 5_000;

interface Upload {
  /** Sends bytes; without an argument, ends the body. */
  send(bytes?: number): void;
  result: Promise<Body | string>;
}

/** Begins an upload. @param announced its Content-Length; undefined for a body in chunks */
function begin(
  reader: ReturnType<typeof createBodyReader>,
  announced: number | undefined,
  sender = "10.0.0.1",
  maxBytes = MAX_BYTES,
): Upload {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const headers: Record<string, string> = announced === undefined ? {} : { "Content-Length": String(announced) };
  const request = new Request("http://sds.test/", { method: "POST", body: readable, headers });
  return {
    send(bytes) {
      void (bytes === undefined ? writer.close() : writer.write(new Uint8Array(bytes))).catch(() => undefined);
    },
    result: reader
      .read(request, { maxBytes, sender })
      .catch((thrown: { code: string; message: string }) => `${thrown.code}: ${thrown.message}`),
  };
}

const GIVEN_UP = "unavailable: Too many bodies are being read at once. It is safe to try again.";

/** Begins a chunked upload of up to 90,000 bytes. */
const stream = (reader: ReturnType<typeof createBodyReader>, sender: string) =>
  begin(reader, undefined, sender, 90_000);

/** Sends small bodies whole. */
function sendWhole(...uploads: [upload: Upload, bytes: number][]): void {
  for (const [upload, bytes] of uploads) {
    upload.send(bytes);
    upload.send();
  }
}

async function bytesOf(upload: Upload): Promise<number | string> {
  const body = await upload.result;
  return typeof body === "string" ? body : body.bytes.length;
}

/** Milliseconds of the test's clock. */
let time = 0;
const clock = () => time;

/** Sends bytes, and waits until they are counted. */
async function send(upload: Upload, bytes?: number): Promise<void> {
  upload.send(bytes);
  await nextTurn();
}

describe("the bytes of all bodies are limited", () => {
  test("and requests that only announce a body, from many networks, do not displace a body that arrives", async () => {
    const reader = createBodyReader({ clock });
    const size = 5 * 1024 * 1024;
    const upload = begin(reader, size, "10.0.0.1", size);
    const flood: Upload[] = [];
    for (let sent = 0; sent < size; sent += 64 * 1024) {
      for (let n = 0; n < 20; n += 1) flood.push(begin(reader, size, `10.1.0.${flood.length}`, size));
      time += 1_000;
      await send(upload, 64 * 1024);
    }
    upload.send();
    expect(await bytesOf(upload)).toBe(size);
    for (const each of flood) each.send();
    await Promise.all(flood.map(({ result }) => result));
  });

  test("and of several stalled bodies, the one stalled longest is given up", async () => {
    const reader = createBodyReader({ maxTotalBytes: 200_000, clock });
    const [first, second] = [stream(reader, "a"), stream(reader, "b")];
    await send(first, 50_000);
    time += 600;
    await send(second, 50_000);
    time += 600;
    // Single bytes do not count as progress.
    await send(first, 1);
    const third = stream(reader, "c");
    await send(third, 60_000);
    expect(await first.result).toBe(GIVEN_UP);
    await send(second, 1);
    for (const each of [second, third]) each.send();
    expect(await Promise.all([second, third].map(bytesOf))).toEqual([50_001, 60_000]);
  });

  test("and stalled bodies are given up one after the other, until there is room", async () => {
    const reader = createBodyReader({ maxTotalBytes: 200_000, clock });
    const stalled = ["a", "b"].map((sender) => stream(reader, sender));
    for (const upload of stalled) await send(upload, 60_000);
    time += 1_000;
    const other = stream(reader, "c");
    await send(other, 90_000);
    expect(await Promise.all(stalled.map(({ result }) => result))).toEqual([GIVEN_UP, GIVEN_UP]);
    other.send();
    expect(await bytesOf(other)).toBe(90_000);
  });

  test("and if no body is stalled, a body that makes progress takes the room of a sender with more bytes", async () => {
    const reader = createBodyReader({ maxTotalBytes: 200_000, clock });
    const [first, second] = [stream(reader, "a"), stream(reader, "a")];
    await send(first, 60_000);
    await send(second, 60_000);
    const other = stream(reader, "b");
    await send(other, 70_000);
    expect(await first.result).toBe(GIVEN_UP);
    for (const each of [second, other]) each.send();
    expect(await Promise.all([second, other].map(bytesOf))).toEqual([60_000, 70_000]);
  });

  test("and if no body is stalled, a body with little progress or with more bytes is refused", async () => {
    const reader = createBodyReader({ maxTotalBytes: 200_000, clock });
    const [first, second] = [stream(reader, "a"), stream(reader, "b")];
    await send(first, 70_000);
    await send(second, 70_000);
    const small = stream(reader, "c");
    await send(small, 15_000);
    expect(await small.result).toBe(GIVEN_UP);
    await send(second, 15_000);
    expect(await second.result).toBe(GIVEN_UP);
    first.send();
    expect(await bytesOf(first)).toBe(70_000);
  });

  test("and a small body finds room beside large ones that make progress", async () => {
    const reader = createBodyReader({ maxTotalBytes: 200_000, clock });
    const uploads = ["a", "b"].map((sender) => stream(reader, sender));
    for (const upload of uploads) await send(upload, 70_000);
    const small = begin(reader, 5_000, "c");
    small.send(5_000);
    for (const each of [...uploads, small]) each.send();
    expect(await Promise.all([...uploads, small].map(bytesOf))).toEqual([70_000, 70_000, 5_000]);
  });

  test("and small bodies count with their whole length before they are complete", async () => {
    const reader = createBodyReader({ maxTotalBytes: 20_000, clock });
    const uploads = Array.from({ length: 3 }, () => begin(reader, MAX_BYTES));
    expect(await bytesOf(begin(reader, MAX_BYTES))).toBe(GIVEN_UP);
    sendWhole(...uploads.map((each): [Upload, number] => [each, MAX_BYTES]));
    expect(await Promise.all(uploads.map(bytesOf))).toEqual([MAX_BYTES, MAX_BYTES, MAX_BYTES]);
  });

  test("and complete bodies count until they are disposed, but are not given up", async () => {
    const reader = createBodyReader({ maxTotalBytes: 8_100, clock });
    const upload = begin(reader, 5_000);
    sendWhole([upload, 5_000]);
    const body = (await upload.result) as Body;
    expect(await begin(reader, 2_000).result).toBe(GIVEN_UP);
    body[Symbol.dispose]();
    body[Symbol.dispose]();
    const [large, small] = [begin(reader, 5_000), begin(reader, 1_000)];
    sendWhole([large, 5_000], [small, 1_000]);
    expect(await Promise.all([large, small].map(bytesOf))).toEqual([5_000, 1_000]);
  });

  test("and a body that failed or was given up does not count", async () => {
    const reader = createBodyReader({ maxTotalBytes: 7_000, timeoutMs: 100, clock });
    for (let n = 0; n < 10; n += 1) {
      expect(await begin(reader, 5_000).result).toBe(
        "unavailable: The body took too long to arrive. It is safe to try again.",
      );
    }
    const tooLarge = begin(reader, undefined);
    tooLarge.send(MAX_BYTES + 1);
    expect(await tooLarge.result).toBe("too_large: The body may have 5000 bytes at most.");
    const complete = begin(reader, 5_000);
    sendWhole([complete, 5_000]);
    expect(await bytesOf(complete)).toBe(5_000);
  });
});

test("the bytes of a disposed body are freed, even if the body is still referenced", async () => {
  const upload = begin(createBodyReader(), 5_000);
  sendWhole([upload, 5_000]);
  const body = (await upload.result) as Body;
  expect(body.bytes.length).toBe(5_000);
  body[Symbol.dispose]();
  expect(body.bytes.length).toBe(0);
});

describe("a sender that asks for a closed connection can send too large a body, and gets the answer", () => {
  // More than the buffers of a connection can hold.
  const text = "x".repeat(16 * 1024 * 1024);
  const forms = [
    ["announced", `Content-Length: ${text.length}\r\n\r\n${text}`],
    ["in chunks", `Transfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`],
  ] as const;

  test.each(forms)("%s", async (_, rest) => {
    const reader = createBodyReader();
    const afterBody = createBodyDropper({ timeoutMs: 600_000 });
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      async fetch(request) {
        const refusal = await reader.read(request, { maxBytes: MAX_BYTES, sender: "a" }).catch(({ code }) => code);
        return afterBody(request, new Response(refusal, { status: 413 }));
      },
    });
    afterTest(() => server.stop(true));
    const head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    expect(await exchangeInTurn(server.url.href, head + rest)).toEndWith("\r\n\r\ntoo_large");
  });
});

describe("the body of a request is dropped", () => {
  const refusal = new Response("", { status: 400 });
  const endless = (headers = { Connection: "close" }, body = new TransformStream<Uint8Array>().readable) =>
    new Request("http://sds.test/", { method: "POST", body, headers });

  test("only if it is refused, and if the connection ends", () => {
    const afterBody = createBodyDropper();
    const [accepted, busy] = [202, 503].map((status) => new Response("", { status })) as [Response, Response];
    expect(afterBody(endless(), accepted)).toBe(accepted);
    expect(afterBody(endless(), busy)).toBe(busy);
    expect(afterBody(endless({ Connection: "keep-alive" }), refusal)).toBe(refusal);
    expect(afterBody(new Request("http://sds.test/", { headers: { Connection: "close" } }), refusal)).toBe(refusal);
  });

  test("only if nobody has read it", async () => {
    const request = new Request("http://sds.test/", { method: "POST", body: "{}", headers: { Connection: "close" } });
    await request.bytes();
    expect(createBodyDropper()(request, refusal)).toBe(refusal);
  });

  test("until the sender ends the connection", async () => {
    const afterBody = createBodyDropper({ maxDrops: 1 });
    for (let request = 1; request <= 2; request += 1) {
      const { readable, writable } = new TransformStream();
      const dropping = afterBody(endless({ Connection: "close" }, readable), refusal);
      expect(dropping).toBeInstanceOf(Promise);
      void writable.abort(new Error("the sender has closed the connection")).catch(() => undefined);
      expect(await dropping).toBe(refusal);
    }
  });

  test("for a limited time, and of a limited number of requests", async () => {
    const afterBody = createBodyDropper({ timeoutMs: 1, maxDrops: 1 });
    for (const Connection of ["close", "TE, Close"]) {
      const dropping = afterBody(endless({ Connection }), refusal);
      expect(dropping).toBeInstanceOf(Promise);
      expect(afterBody(endless(), refusal)).toBe(refusal);
      expect(await dropping).toBe(refusal);
    }
  });
});
