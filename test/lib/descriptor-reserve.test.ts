import { expect, test } from "bun:test";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { createDescriptorReserve, descriptorLimit } from "../../src/lib/descriptor-reserve.ts";
import { afterTest } from "../support/cleanup.ts";

const LIB = join(import.meta.dir, "../../src/lib");

function openReserve(wanted: number, limit: number | null) {
  const reserve = createDescriptorReserve({ wanted, limit, onShortage: () => undefined });
  afterTest(() => reserve.stop());
  return reserve;
}

/** Counts the descriptors that the reserve holds in this process. */
function heldCount(): number {
  return readdirSync("/proc/self/fd").filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === "/dev/null";
    } catch {
      return false;
    }
  }).length;
}

test("a reserve holds the wanted number, at most a quarter of the limit, from its start to its stop", () => {
  expect([openReserve(10, 64).size, openReserve(100, 64).size]).toEqual([10, 16]);
  const before = heldCount();
  const reserve = openReserve(10, 64);
  expect(heldCount() - before).toBe(0);
  reserve.start();
  expect(heldCount() - before).toBe(10);
  reserve.stop();
  expect(heldCount() - before).toBe(0);
});

test("the limit is the limit of this process; an unknown limit does not reduce the reserve", () => {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  expect(descriptorLimit()).toBe(Number(limit));
  const code = `import { descriptorLimit } from "${LIB}/descriptor-reserve.ts"; console.log(descriptorLimit());`;
  const child = Bun.spawnSync(["sh", "-c", 'ulimit -n 300 && exec "$@"', "sh", process.execPath, "-e", code]);
  expect(child.stdout.toString()).toBe("300\n");
  expect(openReserve(600, null).size).toBe(600);
});

test("lent descriptors are free for the caller, and the reserve is full again soon", () => {
  const before = heldCount();
  const reserve = openReserve(4, 64);
  reserve.start();
  const seen = reserve.withSpare(() => heldCount() - before, 3);
  expect(seen).toBe(1);
  expect(heldCount() - before).toBe(4);
  expect(() => reserve.withSpare(() => undefined, 5)).toThrow(
    expect.objectContaining({ code: "EMFILE", message: "no file descriptor is left" }),
  );
  const opened = reserve.lendToThread(() => openSync("/dev/zero", "r"));
  closeSync(opened);
  expect(heldCount() - before).toBe(4);
});

/**
 * Makes a handler that answers requests in pairs. The first and the last request are answered alone and immediately,
 * because they have no second request to wait for.
 * @param last the number of the last request
 */
function answerTwoAtOnce(last: number): () => Promise<Response> {
  let count = 0;
  let held: (() => void)[] = [];
  return async () => {
    count += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    held.push(resolve);
    if (held.length === 2 || count === 1 || count === last) {
      for (const answer of held) answer();
      held = [];
    }
    await promise;
    return new Response("answer");
  };
}

/**
 * Runs code in a process that may have 64 descriptors. The code can call `fill`, which takes all remaining descriptors.
 * @returns the output
 */
async function withFewDescriptors(code: string): Promise<string> {
  const program = `
    import { closeSync, openSync, writeSync } from "node:fs";
    import { open } from "node:fs/promises";
    import { createDescriptorReserve, isShortage, reservedFetch } from "${LIB}/descriptor-reserve.ts";
    const held: number[] = [];
    const fill = () => { try { for (;;) held.push(openSync("/dev/zero", "r")); } catch {} };
    // The first file and the first request make Bun start its threads, while descriptors are still free.
    await (await open("/dev/zero")).close();
    await (await fetch("http://127.0.0.1:" + process.env.PORT, { keepalive: false })).text();
    const reserve = createDescriptorReserve({ wanted: 4, onShortage: () => undefined });
    ${code}
    process.exit();
  `;
  const limited = ["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", process.execPath, "-e", program];
  const server = Bun.serve({ port: 0, fetch: answerTwoAtOnce(13) });
  afterTest(() => server.stop(true));
  const env = { ...process.env, PORT: String(server.port) };
  const child = Bun.spawn(limited, { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect(stderr).toBe("");
  return stdout;
}

test("a fetch without a free descriptor fails with a code that counts as a shortage", async () => {
  const seen = await withFewDescriptors(`
    fill();
    const thrown = await fetch("http://127.0.0.1:9/").catch((error) => error);
    writeSync(1, thrown.code + " " + isShortage(thrown));
  `);
  expect(seen).toBe("EMFILE true");
});

test("more fetches than the reserve has descriptors wait for each other", async () => {
  const seen = await withFewDescriptors(`
    reserve.start();
    fill();
    const reserved = reservedFetch(reserve, fetch);
    const url = "http://127.0.0.1:" + process.env.PORT;
    const read = async () => (await reserved(url, { keepalive: false })).text();
    const answers = await Promise.all(Array.from({ length: 12 }, () => read().catch((error) => error.code)));
    writeSync(1, JSON.stringify(answers));
  `);
  expect(JSON.parse(seen)).toEqual(Array.from({ length: 12 }, () => "answer"));
});

test("a lent descriptor stays free until another thread opens it", async () => {
  const seen = await withFewDescriptors(`
    reserve.start();
    fill();
    let count = 0;
    for (let round = 0; round < 50; round += 1) {
      const file = await reserve.lendToThread(() => open("/dev/zero")).catch(() => undefined);
      count += Number(file !== undefined);
      await file?.close();
      reserve.refill();
    }
    writeSync(1, String(count));
  `);
  // Some rounds may fail: on a busy machine a thread may take longer than the reserve waits.
  expect(Number(seen)).toBeGreaterThan(40);
});
