import { describe, expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { failure, Program } from "../support/program.ts";
import { customer, order, reward, subscription } from "../support/records.ts";

describe("import", () => {
  async function prepared(lines: (object | string)[]) {
    const program = await Program.withShop();
    const file = join(temporaryFolder(), "records.ndjson");
    const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
    // In Latin-1, U+00FF becomes a byte that is not UTF-8.
    writeFileSync(file, text, "latin1");
    return { program, file };
  }
  const customers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => customer(from + n));

  test("reads a file, counts what changed, and changes nothing the second time", async () => {
    const { program, file } = await prepared([subscription(1), "", order(1, 1), customer(1)]);
    expect(await program.json(["import", file])).toEqual({ read: 3, changed: 2, events: 0 });
    expect(await program.run(["import", file])).toEqual({
      status: 0,
      stdout: "read 3, changed 0, events 0\n",
      stderr: "",
    });
  });

  test("applies 1,000 lines as a whole, and stops at a bad line with its number", async () => {
    const { program, file } = await prepared([
      ...customers(1, 1499),
      '{"type":"customer","shopifyId":',
      ...customers(1501, 1600),
    ]);
    const { status, stdout, stderr } = await program.run(["import", file]);
    expect({ status, stdout, stderr }).toEqual(
      failure(2, "line 1500: the record is not valid JSON; lines 1 to 1000 were imported, the rest was not"),
    );
    expect(await program.rows("customers")).toHaveLength(1000);
  });

  test("ends a commit early at 16 MiB, so that long lines do not fill the memory", async () => {
    const long = (n: number) => reward(`r${n}`, { notes: new Array(245).fill("a".repeat(1024)) });
    const perCommit = Math.ceil((16 * 1024 * 1024) / JSON.stringify(long(10)).length);
    const { program, file } = await prepared([...Array.from({ length: 100 }, (_, n) => long(n + 10)), "{"]);
    const { status, stderr } = await program.run(["import", file]);
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: `sds: line 101: the record is not valid JSON; lines 1 to ${perCommit} were imported, the rest was not\n`,
    });
    expect(await program.rows("occurrences")).toHaveLength(perCommit);
  });

  test.each([
    [
      "a record that is too large",
      [customer(1), reward("r", { notes: new Array(260).fill("a".repeat(1024)) })],
      "line 2: field notes makes the record larger than 256 KiB as stored; nothing was imported",
    ],
    [
      "a wrong value",
      [customer(1), { ...customer(2), email: 5 }],
      "line 2: field email must be a well-formed string of at most 1024 characters, without U+0000, or null; nothing was imported",
    ],
    [
      "an order for no contract",
      [customer(1), "", order(7, 1)],
      "line 3: field subscription names a contract that is not in the mirror: gid://shopify/SubscriptionContract/7; nothing was imported",
    ],
    ["a line that is not UTF-8", [customer(1), '"\xff"', ""], "line 2: the record is not UTF-8; nothing was imported"],
    [
      "such a line behind whole commits",
      [...customers(1, 2399), "\xff", ""],
      "line 2400: the record is not UTF-8; lines 1 to 2000 were imported, the rest was not",
    ],
  ])("names the line of %s", async (_name, lines, message) => {
    const { program, file } = await prepared(lines);
    expect(await program.run(["import", file])).toEqual(failure(2, message));
  });

  test("says why a file cannot be read", async () => {
    const { program, file } = await prepared([]);
    const folder = temporaryFolder();
    const circle = join(folder, "circle");
    symlinkSync(circle, circle);
    const refusals: [path: string, status: number, message: string][] = [
      ["missing.ndjson", 3, "there is no file missing.ndjson"],
      [join(file, "more"), 3, `there is no file ${file}/more: a part of its path is not a folder`],
      [folder, 2, `${folder} is a folder`],
      [circle, 1, `cannot read ${circle}: ELOOP: too many symbolic links encountered, access '${circle}'`],
    ];
    for (const [path, status, message] of refusals)
      expect(await program.run(["import", path])).toEqual(failure(status, message));
  });
});
