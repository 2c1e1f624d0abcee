import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cannotListen, messageOf, SdsError } from "../../src/domain/error.ts";
import { temporaryFolder } from "../support/app.ts";

/** The message of the error that a call throws. */
function messageFrom(call: () => unknown): string {
  try {
    call();
  } catch (thrown) {
    return messageOf(thrown);
  }
  return "nothing was thrown";
}

test("errors of the system say in our words what is wrong and what to do", async () => {
  expect(messageFrom(() => readFileSync("/none/at/all"))).toBe("/none/at/all does not exist: check the path");
  expect(messageFrom(() => readFileSync("/dev/null/none"))).toBe(
    "a folder in the path of /dev/null/none is a file: check the path",
  );
  expect(messageFrom(() => readFileSync("/"))).toBe("it is a folder: name a file");
  const denied = Object.assign(new Error("EACCES: permission denied, lstat '/x'"), { code: "EACCES", path: "/x" });
  expect(messageOf(denied)).toBe("this user may not use /x: run this as its owner, or change its mode");
  const refused: unknown = await fetch("http://127.0.0.1:1/").catch((thrown: unknown) => thrown);
  expect(messageOf(refused)).toBe("nothing listens there: start the server, or correct the address");
});

test("SQLite's errors of a file say what to check", () => {
  expect(messageFrom(() => new Database("/none/at/all"))).toBe(
    "its file cannot be opened: run this as its owner, and check the limit of open files",
  );
  const file = join(temporaryFolder(), "file");
  writeFileSync(file, "");
  expect(messageFrom(() => new Database(file, { readonly: true }).run("CREATE TABLE t (a)"))).toBe(
    "its file cannot be written: run this as its owner, and check its mode and its disk",
  );
});

test.each([
  ["EADDRINUSE", "another program uses the port: stop it, or choose another one with --port"],
  ["EMFILE", "EMFILE: too many files"],
  ["EADDRNOTAVAIL", "this machine has no such address: use one of its own, such as 127.0.0.1"],
  ["EINVAL", "this machine has no such address: use one of its own, such as 127.0.0.1"],
  ["ENOENT", "this machine has no such address: use one of its own, such as 127.0.0.1"],
])("a server that cannot listen because of %s says why", (code, why) => {
  const cause = Object.assign(new Error(`${code}: too many files`), { code });
  expect(cannotListen("x", 80, cause).message).toBe(`cannot listen on x port 80: ${why}`);
});

test("a server that cannot listen because of an error without a code gives its message", () => {
  expect(cannotListen("x", 80, new Error("broken")).message).toBe("cannot listen on x port 80: broken");
});

test("other messages stay", () => {
  expect(messageOf(new SdsError("failed", "it is late"))).toBe("it is late");
  expect(messageOf("a text")).toBe("a text");
  expect(messageFrom(() => readSync(-1, Buffer.alloc(1)))).not.toBe("nothing was thrown");
});
