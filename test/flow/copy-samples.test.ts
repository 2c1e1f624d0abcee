import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gid, order } from "../support/records.ts";
import { load, ORDERS, RUNTIMES, rowsOf, served } from "../support/sample-runs.ts";
import { shellWith } from "../support/samples.ts";

// Starting programs takes time on a busy machine.
setDefaultTimeout(60_000);

describe("docs/copies.md", () => {
  test.each(RUNTIMES)("$name keeps a copy that equals the mirror", async (runtime) => {
    const { program, url, key, folder, run, install } = await served();
    const isPython = runtime.suffix === "py";
    const file = join(folder, isPython ? "orders.db" : "orders.json");
    const command = [...install(runtime, isPython ? "copy_rows" : "copy"), "orders", file];
    const copied = () => (isPython ? copyInSqlite(file) : copyInJson(file));
    const isCurrent = async () => {
      expect(await run(command)).toEqual({ status: 0, stdout: expect.stringMatching(/^\d+ orders\n$/), stderr: "" });
      const rows = await rowsOf(url, key, "orders");
      expect(copied()).toEqual(Object.fromEntries(rows.map((row) => [row["id"], row])));
      return rows.length;
    };
    expect(await isCurrent()).toBe(ORDERS.length);
    expect(await isCurrent()).toBe(ORDERS.length);
    // More changes than a page has, of rows that are known and of new ones.
    await load(program, [
      ...ORDERS.map((each) => ({ ...each, shopifyId: gid.order(1), discountCents: 1 })),
      order(1, 500),
    ]);
    expect(await isCurrent()).toBe(ORDERS.length + 1);
    // A checkpoint of another time: the copy is made anew.
    forgeCheckpoint(file, isPython);
    expect(await isCurrent()).toBe(ORDERS.length + 1);
  });

  test("the two calls answer with a checkpoint and with what changed since", async () => {
    const { program, shell } = await served();
    const [first = "", second = ""] = shellWith("copies.md", "since=").trimEnd().split("\n");
    const checkpoint = /^x-checkpoint: (\S+)/i.exec((await shell(first)).stdout)?.[1] ?? "";
    expect(checkpoint).not.toBe("");
    await load(program, [order(1, 1, { shopifyId: gid.order(7) })]);
    const { stdout } = await shell(second.replace("CHECKPOINT", encodeURIComponent(checkpoint)));
    expect(JSON.parse(stdout)).toMatchObject({ data: [{ shopifyId: gid.order(7) }], page: { nextCursor: null } });
  });
});

function copyInJson(file: string): unknown {
  return (JSON.parse(readFileSync(file, "utf8")) as { rows: unknown }).rows;
}

function copyInSqlite(file: string): unknown {
  const script =
    "import json, sqlite3, sys; print(json.dumps({id: json.loads(row) for id, row in sqlite3.connect(sys.argv[1]).execute('SELECT * FROM row')}))";
  return JSON.parse(Bun.spawnSync(["python3", "-c", script, file]).stdout.toString());
}

/** Puts a checkpoint into a copy that is not from this database. */
function forgeCheckpoint(file: string, isPython: boolean): void {
  const forged = "2026-01-01T00:00:00.000Z~chg_aaaaaaaaaaaaaaaaaaaaaaaa";
  if (isPython) {
    const script =
      "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('UPDATE checkpoint SET value = ?', sys.argv[2:]); db.commit()";
    Bun.spawnSync(["python3", "-c", script, file, forged]);
  } else {
    const copy = JSON.parse(readFileSync(file, "utf8")) as object;
    writeFileSync(file, JSON.stringify({ ...copy, checkpoint: forged }));
  }
}
