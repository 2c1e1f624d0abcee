import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { Program } from "../support/program.ts";
import { customer } from "../support/records.ts";
import { readRows } from "../support/rows.ts";

test("a restore refuses a copy whose index disagrees with its table", async () => {
  const program = await Program.withShop();
  const stdin = Array.from({ length: 300 }, (_, n) => JSON.stringify(customer(n + 1))).join("\n");
  await program.json(["import", "-"], { stdin });
  const copy = join(temporaryFolder(), "copy.db");
  await program.json(["backup", copy]);

  const id = String(readRows(program.data, "customers")[100]?.["id"]);
  const places = Array.from(readFileSync(copy, "latin1").matchAll(new RegExp(id, "g")), ({ index }) => index);
  const results = places.map(async (place, n) => {
    const bytes = readFileSync(copy);
    bytes[place + 10] = (bytes[place + 10] ?? 0) ^ 1;
    const changed = join(temporaryFolder(), `changed${n}.db`);
    writeFileSync(changed, bytes);
    const { status, stderr } = await program.run(["restore", changed, "--yes"]);
    return { status, isDamaged: stderr.includes("is damaged") };
  });
  // The id is stored in four places: the row's key, its JSON, the index by id, and the list of changes.
  expect(places).toHaveLength(4);
  expect((await Promise.all(results)).filter(({ status, isDamaged }) => status === 2 && isDamaged)).toHaveLength(2);
  expect(readRows(program.data, "customers")).toHaveLength(300);
});
