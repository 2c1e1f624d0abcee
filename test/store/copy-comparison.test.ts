import { expect, test } from "bun:test";
import { type CopySide, type CopyTarget, copyRows } from "../../src/store/copy/copy.ts";
import type { CopiedRow } from "../../src/store/copy/tally.ts";

/** Makes a side in memory with rows in one table. */
function memorySide(table: string, rows: CopiedRow[]): CopySide {
  return {
    name: "memory",
    count: async ({ name }) => (name === table ? rows.length : 0),
    async *batches({ name }) {
      if (name === table) yield rows;
      return undefined;
    },
    lastNumber: async () => rows.length,
    sealedWith: async () => undefined,
    close: async () => undefined,
  };
}

test.each([
  [
    "has other content than in memory",
    [
      ["a", "1"],
      ["b", "3"],
    ],
  ],
  ["has 1 row, and 2 were read from memory", [["a", "1"]]],
  [
    "has 3 rows, and 2 were read from memory",
    [
      ["a", "1"],
      ["b", "2"],
      ["c", "3"],
    ],
  ],
] as [string, CopiedRow[]][])("a copy whose table %s is refused", async (how, stored) => {
  let isFinished = false;
  const target: CopyTarget = {
    ...memorySide("meta", stored),
    write: async () => undefined,
    setLastNumber: async () => undefined,
    async finish() {
      isFinished = true;
    },
  };
  const source = memorySide("meta", [
    ["a", "1"],
    ["b", "2"],
  ]);
  await expect(copyRows(source, target, () => undefined)).rejects.toMatchObject({
    code: "failed",
    message: expect.stringContaining(`the table meta ${how}`),
  });
  expect(isFinished).toBeFalse();
});
