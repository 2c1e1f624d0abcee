import { expect, test } from "bun:test";
import { allNodes, type NodePage, nextCursor } from "../../../src/shopify/api/paging.ts";

function page<T>(nodes: T[], endCursor: string | null, hasNextPage = endCursor !== null): NodePage<T> {
  return { nodes, pageInfo: { hasNextPage, endCursor } };
}

test("the last page has no next cursor", () => {
  expect(nextCursor(page([], "b"), "a")).toBe("b");
  expect(nextCursor(page([], "b", false), "a")).toBeUndefined();
});

test.each([
  [null, null],
  ["a", "a"],
  ["a", null],
])("a page after %p whose next cursor is %p is refused, because reading on would never end", (cursor, endCursor) => {
  expect(() => nextCursor(page([], endCursor, true), cursor)).toThrow(expect.objectContaining({ reason: "refused" }));
});

test("all nodes are read, page by page", async () => {
  const pages: Record<string, NodePage<number>> = { a: page([2, 3], "b"), b: page([4], null) };
  expect(await allNodes(page([1], "a"), async (after) => pages[after])).toEqual([1, 2, 3, 4]);
});

test("reading ends without an error if the object is gone", async () => {
  expect(await allNodes(page([1], "a"), async () => undefined)).toEqual([1]);
});

test("a cursor that does not move is refused on later pages too", async () => {
  const stuck = allNodes(page([1], "a"), async () => page([2], "a"));
  await expect(stuck).rejects.toThrow("has no cursor of its own");
});

test("empty pages that do not end are refused", async () => {
  let n = 0;
  const endless = allNodes(page([], "0"), async () => {
    n += 1;
    return page([], String(n));
  });
  await expect(endless).rejects.toThrow("the platform's list of an object does not end");
  expect(n).toBe(2_000);
});

test("a list that does not end is refused, before it fills the memory", async () => {
  let n = 0;
  const endless = allNodes(page([0], "0"), async () => {
    n += 1;
    return page(Array<number>(250).fill(n), String(n));
  });
  await expect(endless).rejects.toThrow("the platform's list of an object does not end");
  expect(n).toBe(8);
});
