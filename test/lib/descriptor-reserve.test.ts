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

/** How many descriptors of this process are of the reserve. */
function heldCount(): number {
  return readdirSync("/proc/self/fd").filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === "/dev/null";
    } catch {
      return false;
    }
  }).length;
}

test("a reserve holds what is wanted, at most a quarter of the limit, from its start to its stop", () => {
  expect([openReserve(10, 64).size, openReserve(100, 64).size]).toEqual([10, 16]);
  const before = heldCount();
  const reserve = openReserve(10, 64);
  expect(heldCount() - before).toBe(0);
  reserve.start();
  expect(heldCount() - before).toBe(10);
  reserve.stop();
  expect(heldCount() - before).toBe(0);
});

test("the limit is that of this process, and one that nobody knows takes nothing from the reserve", () => {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  expect(descriptorLimit()).toBe(Number(limit));
  const code = `import { descriptorLimit } from "${LIB}/descriptor-reserve.ts"; console.log(descriptorLimit());`;
  const child = Bun.spawnSync(["sh", "-c", 'ulimit -n 300 && exec "$@"', "sh", process.execPath, "-e", code]);
  expect(child.stdout.toString()).toBe("300\n");
  expect(openReserve(600, null).size).toBe(600);
});

test("what it opens finds descriptors free, and the reserve is full again as soon as others are", () => {
  const before = heldCount();
  const reserve = openReserve(4, 64);
  reserve.start();
  const seen = reserve.withSpare(() => heldCount() - before, 3);
  expect(seen).toBe(1);
  expect(heldCount() - before).toBe(4);
  expect(() => reserve.withSpare(() => undefined, 5)).toThrow(
    expect.objectContaining({ code: "EMFILE", message: "no file descriptor is left" }),
  );
  const opened = reserve.withSpareForThread(() => openSync("/dev/zero", "r"));
  closeSync(opened);
  expect(heldCount() - before).toBe(4);
});
