import { expect, test } from "bun:test";
import { linkSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { draftPath, isDraftName, publishDraft, removeDrafts } from "../../../src/store/files/drafts.ts";
import { randomBytes, temporaryFolder } from "../../support/app.ts";

function withoutLinks(): never {
  throw Object.assign(new Error("operation not permitted"), { code: "EPERM" });
}

test.each([
  ["with links", linkSync],
  ["without links", withoutLinks],
])("a draft gets its place on a file system %s, and overwrites nothing there", (_which, link) => {
  const target = join(temporaryFolder(), "target");
  const [first, second] = [draftPath(target, randomBytes), draftPath(target, randomBytes)];
  writeFileSync(first, "first");
  writeFileSync(second, "second");
  publishDraft(first, target, link);
  expect(() => publishDraft(second, target, link)).toThrow(expect.objectContaining({ code: "EEXIST" }));
  expect(readFileSync(target, "utf8")).toBe("first");
  expect(readFileSync(second, "utf8")).toBe("second");
});

test("publishing a missing draft fails, and leaves no empty file", () => {
  const folder = temporaryFolder();
  const target = join(folder, "target");
  expect(() => publishDraft(draftPath(target, randomBytes), target, withoutLinks)).toThrow("ENOENT");
  expect(readdirSync(folder)).toEqual([]);
});

test("only the drafts of one file are removed, also older versions' drafts and SQLite's files beside them", () => {
  const folder = temporaryFolder();
  const own = ["a.0123456789abcdef.partial", "a.0123456789abcdef.partial-journal", "a.7.new", "a.0123456789abcdef.new"];
  const others = ["a", "a.b.0123456789abcdef.partial", "ab.7.new", "a.7.new.txt", "a.partial", "a.0123.partial"];
  for (const name of [...own, ...others]) writeFileSync(join(folder, name), "");
  removeDrafts(join(folder, "a"));
  expect(readdirSync(folder).toSorted()).toEqual(others.toSorted());
});

test("a draft is known by its name", () => {
  expect(isDraftName(draftPath("a.db", randomBytes))).toBe(true);
  expect(["a.db", "a.db.partial", "a.db.0123456789abcdef.partial-journal"].some(isDraftName)).toBe(false);
});
