import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openFileStore } from "../../src/client/file-store.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";

interface Row {
  id: string;
  value: number;
}

async function open(path: string) {
  const store = await openFileStore<Row>(path);
  afterTest(() => store.close());
  return store;
}

/**
 * Runs code on a store in a process with a limited file size: the system writes what fits, and refuses the rest.
 * @param blocks the limit. A block has 512 or 1,024 bytes, depending on the shell
 * @returns what the code prints
 */
function runLimited(blocks: number, path: string, code: string): string {
  const source = `
    import { openFileStore } from ${JSON.stringify(join(import.meta.dir, "../../src/client/file-store.ts"))};
    const store = await openFileStore(${JSON.stringify(path)});
    ${code}
  `;
  const limit = `trap '' XFSZ; ulimit -f ${blocks}; exec "$@"`;
  const { exitCode, stdout } = Bun.spawnSync(["sh", "-c", limit, "sh", process.execPath, "-e", source]);
  expect(exitCode).toBe(0);
  return stdout.toString();
}

const first = { checkpoint: "1~2", cursor: "a" };
const second = { checkpoint: "1~3", cursor: null };

test("a reopened file has the saved rows and state", async () => {
  const path = join(temporaryFolder(), "orders.copy");
  const store = await open(path);
  expect({ state: await store.load(), rows: store.rows.size }).toEqual({ state: undefined, rows: 0 });
  const [a, b, newA] = [
    { id: "a", value: 1 },
    { id: "b", value: 2 },
    { id: "a", value: 3 },
  ];
  await store.save([a, b], first);
  await store.save([newA], second);
  const again = await open(path);
  expect({ state: await again.load(), rows: [...again.rows.values()] }).toEqual({ state: second, rows: [newA, b] });
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("opening removes a save that a crash cut off at any byte, and the next save is whole", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "orders.copy");
  const store = await open(path);
  await store.save([{ id: "a", value: 1 }], first);
  const kept = statSync(path).size;
  await store.save([{ id: "a", value: 2 }], second);
  const bytes = readFileSync(path);
  for (let size = kept; size < bytes.length; size++) {
    const cut = join(folder, `cut-${size}`);
    writeFileSync(cut, bytes);
    truncateSync(cut, size);
    const opened = await open(cut);
    const [row, next] = [
      { id: "a", value: 1 },
      { id: "é", value: 3 },
    ];
    expect([size, await opened.load(), opened.rows.get("a")]).toEqual([size, first, row]);
    await opened.save([next], second);
    expect([...(await open(cut)).rows.values()]).toEqual([row, next]);
  }
});

test("a save that fits only in part is an error, and the next save is whole", async () => {
  const path = join(temporaryFolder(), "orders.copy");
  const code = `
    await store.save([{ id: "a", value: 1 }], ${JSON.stringify(first)});
    const large = [{ id: "b", value: 2, text: "x".repeat(2_000_000) }];
    const failed = await store.save(large, ${JSON.stringify(second)}).catch(({ code }) => code);
    await store.save([{ id: "c", value: 3 }], ${JSON.stringify(second)});
    console.log(failed, [...store.rows.keys()].join());
  `;
  expect(runLimited(1024, path, code)).toBe("EFBIG a,c\n");
  const again = await open(path);
  expect({ state: await again.load(), ids: [...again.rows.keys()] }).toEqual({ state: second, ids: ["a", "c"] });
});

test("a cleared file is empty, also after it is reopened", async () => {
  const path = join(temporaryFolder(), "orders.copy");
  const store = await open(path);
  await store.save([{ id: "a", value: 1 }], second);
  await store.clear();
  await store.save([{ id: "b", value: 2 }], first);
  const again = await open(path);
  expect({ state: await again.load(), ids: [...again.rows.keys()] }).toEqual({ state: first, ids: ["b"] });
});

describe("a file with many former states of rows is rewritten, with the same rows and state", () => {
  const COUNT = 3_000;
  const rowsWith = (value: number) => Array.from({ length: COUNT }, (_, index) => ({ id: `r${index}`, value }));

  /** Makes a file with four states of each row. */
  function fileOfFour(): string {
    const path = join(temporaryFolder(), "orders.copy");
    const line = (value: number) => `${JSON.stringify({ state: second, rows: rowsWith(value) })}\n`;
    writeFileSync(path, [0, 1, 2, 3].map(line).join(""));
    return path;
  }

  async function expectRows(path: string, value: number): Promise<void> {
    const store = await open(path);
    expect({ rows: [...store.rows.values()], state: await store.load() }).toEqual({
      rows: rowsWith(value),
      state: second,
    });
  }

  test("before a save", async () => {
    const path = join(temporaryFolder(), "orders.copy");
    const store = await open(path);
    await store.save(rowsWith(0), second);
    const { size } = statSync(path);
    writeFileSync(`${path}.new`, "of a run that was ended");
    for (let value = 1; value < 5; value++) await store.save(rowsWith(value), second);
    // The file does not have all five states, because it was rewritten before the last save.
    expect(statSync(path).size).toBeLessThan(size * 2.1);
    await expectRows(path, 4);
    for (let value = 5; value < 7; value++) await store.save(rowsWith(value), second);
    await expectRows(path, 6);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("at opening", async () => {
    const path = fileOfFour();
    const { size } = statSync(path);
    await expectRows(path, 3);
    expect(statSync(path).size).toBeLessThan(size / 3);
  });

  test("when more than half of its saved rows are outdated", async () => {
    const path = join(temporaryFolder(), "orders.copy");
    const rows = Array.from({ length: 6_000 }, (_, index) => ({ id: `r${index}`, value: 1 }));
    writeFileSync(path, `${JSON.stringify({ state: second, rows })}\n`.repeat(2));
    const { size } = statSync(path);
    const store = await open(path);
    expect(statSync(path).size).toBe(size);
    await store.save(rows.slice(0, 1), second);
    await open(path);
    expect(statSync(path).size).toBeLessThan(size * 0.6);
  });

  test.each([
    ["without rows", []],
    ["with one row", [{ id: "a", value: 1 }]],
  ])("also after many saves %s", async (_, rows) => {
    const path = join(temporaryFolder(), "orders.copy");
    const line = (checkpoint: string) => `${JSON.stringify({ state: { checkpoint, cursor: null }, rows })}\n`;
    writeFileSync(path, Array.from({ length: 10_001 }, (_, n) => line(`1~${n}`)).join(""));
    const store = await open(path);
    expect(statSync(path).size).toBe(line("1~10000").length);
    await store.save([{ id: "b", value: 2 }], second);
    const again = await open(path);
    expect([...again.rows.values()]).toEqual([...rows, { id: "b", value: 2 }]);
  });

  test("and opens also if it cannot be rewritten", async () => {
    const path = fileOfFour();
    mkdirSync(`${path}.new`);
    await expectRows(path, 3);
  });

  test("and a draft that did not fit leaves no bytes", async () => {
    const path = fileOfFour();
    // The rewrite needs more than 20 blocks, so it fails.
    expect(runLimited(20, path, "")).toBe("");
    expect(statSync(`${path}.new`).size).toBe(0);
    await expectRows(path, 3);
  });

  test("and the old file stays in use if the rewrite fails", async () => {
    const path = join(temporaryFolder(), "orders.copy");
    const store = await open(path);
    for (let value = 0; value < 4; value++) await store.save(rowsWith(value), second);
    mkdirSync(`${path}.new`);
    await store.save(rowsWith(4), second);
    rmdirSync(`${path}.new`);
    await store.save(rowsWith(5), second);
    await expectRows(path, 5);
  });
});

test.each(["my notes", "my notes\n", "1\n", "{}\n", '{"state":{}}\n'])(
  "a file of another program is refused, and stays unchanged: %j",
  async (text) => {
    const path = join(temporaryFolder(), "notes.txt");
    writeFileSync(path, text);
    await expect(openFileStore(path)).rejects.toThrow(`${path}, line 1: this is not a copy of sds`);
    expect(readFileSync(path, "utf8")).toBe(text);
  },
);
