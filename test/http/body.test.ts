import { describe, expect, test } from "bun:test";
import { type Body, createBodyReader } from "../../src/http/body.ts";

const MAX_BYTES = 5_000;

interface Upload {
  /** Sends bytes; without an argument, ends the body. */
  send(bytes?: number): void;
  result: Promise<Body | string>;
}

/** A body that begins to arrive. @param announced its Content-Length; undefined for a body in chunks */
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

async function bytesOf(upload: Upload): Promise<number | string> {
  const body = await upload.result;
  return typeof body === "string" ? body : body.bytes.length;
}

describe("the bytes of all bodies are limited", () => {
  test("and a new body takes the place of the one that arrives for the longest", async () => {
    const reader = createBodyReader({ maxTotalBytes: 19_000 });
    const [first, second, third] = [begin(reader, 5_000), begin(reader, undefined), begin(reader, 5_000)];
    const fourth = begin(reader, 5_000);
    expect(await first?.result).toBe(GIVEN_UP);
    for (const each of [second, third, fourth]) {
      each?.send(5_000);
      each?.send();
    }
    expect(await Promise.all([second, third, fourth].map(bytesOf))).toEqual([5_000, 5_000, 5_000]);
  });

  test("and a body in chunks counts as it arrives, so that many small ones fit", async () => {
    const reader = createBodyReader({ maxTotalBytes: 100_000 });
    const small = Array.from({ length: 5 }, () => begin(reader, undefined, "10.0.0.1", 80_000));
    for (const each of small) {
      each.send(10);
      each.send();
    }
    expect(await Promise.all(small.map(bytesOf))).toEqual([10, 10, 10, 10, 10]);
    // A complete one counts with its own bytes.
    const large = begin(reader, undefined, "10.0.0.1", 80_000);
    large.send(60_000);
    large.send();
    expect(await bytesOf(large)).toBe(60_000);
    const other = begin(reader, 30_000, "10.0.0.1", 80_000);
    other.send(30_000);
    other.send();
    expect(await bytesOf(other)).toBe(30_000);
  });

  test("and the sender with the most bodies loses the first of them", async () => {
    const reader = createBodyReader({ maxTotalBytes: 19_000 });
    const other = begin(reader, 5_000, "10.0.0.9");
    const [first, second] = [begin(reader, 5_000), begin(reader, 5_000)];
    const third = begin(reader, 5_000);
    expect(await first.result).toBe(GIVEN_UP);
    for (const each of [other, second, third]) {
      each.send(5_000);
      each.send();
    }
    expect(await Promise.all([other, second, third].map(bytesOf))).toEqual([5_000, 5_000, 5_000]);
  });

  test("and complete bodies count until they are disposed, but are not given up", async () => {
    const reader = createBodyReader({ maxTotalBytes: 7_000 });
    const upload = begin(reader, 5_000);
    upload.send(5_000);
    upload.send();
    const body = (await upload.result) as Body;
    expect(await begin(reader, 1_000).result).toBe(GIVEN_UP);
    body[Symbol.dispose]();
    body[Symbol.dispose]();
    const [next, tooMany] = [begin(reader, 5_000), begin(reader, 1_000)];
    expect(await next.result).toBe(GIVEN_UP);
    tooMany.send(1_000);
    tooMany.send();
    expect(await bytesOf(tooMany)).toBe(1_000);
  });

  test("and a body that failed or was given up counts no more", async () => {
    const reader = createBodyReader({ maxTotalBytes: 7_000, timeoutMs: 100 });
    for (let n = 0; n < 3; n += 1) {
      expect(await begin(reader, 5_000).result).toBe(
        "unavailable: The body took too long to arrive. It is safe to try again.",
      );
    }
    const tooLarge = begin(reader, undefined);
    tooLarge.send(MAX_BYTES + 1);
    expect(await tooLarge.result).toBe("too_large: The body may have 5000 bytes at most.");
    const complete = begin(reader, 5_000);
    complete.send(5_000);
    complete.send();
    expect(await bytesOf(complete)).toBe(5_000);
  });
});

test("a body that is disposed does not stay in memory, even if somebody still has it", async () => {
  const upload = begin(createBodyReader(), 5_000);
  upload.send(5_000);
  upload.send();
  const body = (await upload.result) as Body;
  expect(body.bytes.length).toBe(5_000);
  body[Symbol.dispose]();
  expect(body.bytes.length).toBe(0);
});
