import { describe, expect, test } from "bun:test";
import { type CheckpointScope, createCheckpoints, type FormerBranch } from "../../../src/domain/pages/checkpoint.ts";

const EPOCH = new Uint8Array(32).fill(1);
const OLD_EPOCH = new Uint8Array(32).fill(2);
const [FIRST, SECOND, THIRD] = ["", "0a".repeat(16), "0b".repeat(16)] as const;

function checkpoints(branches: FormerBranch[] = [], epoch = EPOCH) {
  return createCheckpoints({
    epoch,
    formerEpochs: [OLD_EPOCH],
    shopIds: async () => [1, 2],
    origins: async () => [],
    formerBranches: async (shopId) => (shopId === 1 ? branches : []),
    now: () => 0,
  });
}

const scope = (branch: string, others: Partial<CheckpointScope> = {}) =>
  ({ shopId: 1, resource: "orders", branch, ...others }) as const;

describe("a checkpoint of a former branch", () => {
  const former = [
    { branch: FIRST, changeCount: 100 },
    { branch: SECOND, changeCount: 200 },
  ];
  const all = checkpoints(former);

  test.each([
    [FIRST, 100, 100],
    [FIRST, 101, "restored"],
    [SECOND, 200, 200],
    [SECOND, 201, "restored"],
    // The database lost this branch completely, including its beginning.
    ["0c".repeat(16), 1, "restored"],
  ])("%p is valid up to the last change that is left: %p", async (branch, number, expected) => {
    const text = all.format(scope(branch), number);
    expect(all.parse(scope(THIRD), text)).toBeUndefined();
    expect(await all.parseFormer(scope(THIRD), text)).toBe(expected as number);
  });

  test("is parsed at once in its own branch", () => {
    for (const branch of [FIRST, SECOND, THIRD])
      expect(all.parse(scope(branch), all.format(scope(branch), 300))).toBe(300);
  });

  test.each([FIRST, SECOND, THIRD])("and of another shop, resource or epoch is refused (%p)", async (branch) => {
    const reasonFor = (text: string) => all.parseFormer(scope(THIRD), text);
    expect(await reasonFor(all.format(scope(branch, { shopId: 2 }), 5))).toBe("other_shop");
    expect(await reasonFor(all.format(scope(branch, { shopId: 3 }), 5))).toBe("not_issued");
    expect(await reasonFor(all.format(scope(branch, { resource: "customers" }), 5))).toBe("other_resource");
    expect(await reasonFor(checkpoints([], OLD_EPOCH).format(scope(branch), 5))).toBe("restored");
    expect(await reasonFor(checkpoints([], new Uint8Array(32)).format(scope(branch), 5))).toBe("not_issued");
  });

  test("is not forged by changing a letter", async () => {
    for (const branch of [FIRST, SECOND]) {
      const text = all.format(scope(branch), 5);
      for (let at = text.length - 24; at < text.length; at += 1) {
        const forged = text.slice(0, at) + (text[at] === "a" ? "b" : "a") + text.slice(at + 1);
        expect(await all.parseFormer(scope(THIRD), forged)).toBeString();
      }
    }
  });
});
