import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { apiShop } from "../support/api-shop.ts";
import { failure, type Result } from "../support/program.ts";
import { fieldValue } from "../support/records.ts";
import { place, rowsIn } from "./pulling.ts";

describe("--include customFields", () => {
  const INCLUDE = ["--resource", "subscriptions", "--include", "customFields"];
  const CSV = [...INCLUDE, "--format", "csv"];

  /** A shop with two subscriptions, and the custom fields tier and note. The second subscription has no note. */
  async function shopWithFields() {
    const shop = await apiShop(2);
    const define = (key: string, type: string) =>
      shop.program.json(["field", "add", key, "--label", key, "--type", type]);
    await define("tier", "number");
    await define("note", "text");
    await shop.load([fieldValue(1, "tier", 1), fieldValue(1, "note", "Hi, you"), fieldValue(2, "tier", 2)]);
    const work = place();
    work.useKey(shop.key);
    const { pull, state } = work;
    const run = (...more: string[]) => pull(shop.server.url, ...more);
    return { ...shop, define, run, state, url: shop.server.url };
  }

  /** The columns of custom fields in each line. They follow the column `cancelledAt`. */
  const columns = ({ stdout }: Result) =>
    stdout.split("\r\n").map((line) => line.split(/cancelledAt|Z,,(?=[^,]*,)/).at(-1));

  test("prints rows with their custom fields, first all and then those whose values changed", async () => {
    const { run, load, url, key } = await shopWithFields();
    const answer = await fetch(`${url}/api/v1/subscriptions?include=customFields`, {
      headers: { Authorization: `Bearer ${key}` },
    });
    const { data } = (await answer.json()) as { data: unknown[] };
    expect(data.map((row) => (row as { customFields: unknown }).customFields)).toContainEqual({
      tier: 1,
      note: "Hi, you",
    });
    const first = await run(...INCLUDE);
    expect({ ...first, stdout: rowsIn(first.stdout) }).toEqual({ status: 0, stdout: data, stderr: "" });
    expect(await run(...INCLUDE)).toEqual({ status: 0, stdout: "", stderr: "" });
    await load([fieldValue(2, "note", "Ho")]);
    expect(rowsIn((await run(...INCLUDE)).stdout)).toMatchObject([{ customFields: { tier: 2, note: "Ho" } }]);
  });

  test("in CSV keeps the columns of the first run, and puts fields that came later into the last column", async () => {
    const { program, run, load, define } = await shopWithFields();
    const header = ",customFields.tier,customFields.note,customFields";
    const first = await run(...CSV);
    expect([columns(first)[0], ...columns(first).slice(1).toSorted(), first.stderr]).toEqual([
      header,
      "",
      '1,"Hi, you",',
      "2,,",
      "",
    ]);
    await define("gift", "boolean");
    await load([fieldValue(2, "gift", true), fieldValue(2, "note", "Ho")]);
    const second = await run(...CSV);
    expect([...columns(second), second.status, second.stderr]).toEqual([
      header,
      '2,Ho,"{""gift"":true}"',
      "",
      0,
      "sds: warning: custom fields without a column of their own: gift. Their values are in the column customFields; " +
        "--anew prints all rows again, with a column for each field\n",
    ]);
    await program.json(["field", "archive", "note"]);
    await load([fieldValue(2, "tier", 3)]);
    expect(columns(await run(...CSV, "--no-header"))).toEqual(['3,,"{""gift"":true}"', ""]);
    const anew = await run(...CSV, "--anew");
    expect([columns(anew)[0], ...columns(anew).slice(1).toSorted(), anew.stderr]).toEqual([
      ",customFields.tier,customFields.gift,customFields",
      "",
      "1,,",
      "3,true,",
      "",
    ]);
  });

  test("in CSV finds the columns also if the state is of NDJSON, which keeps them from then on", async () => {
    const { run, load } = await shopWithFields();
    await run(...INCLUDE);
    await load([fieldValue(2, "note", "Ho")]);
    expect(columns(await run(...CSV))).toEqual([",customFields.tier,customFields.note,customFields", "2,Ho,", ""]);
    await load([fieldValue(2, "note", null), fieldValue(1, "note", null)]);
    await run(...INCLUDE);
    expect(columns(await run(...CSV))).toEqual([",customFields.tier,customFields.note,customFields", ""]);
  });

  test("is refused if the state is of pulls without it, and the other way round, but not with --anew", async () => {
    const { run, state } = await shopWithFields();
    const refused = (how: string) =>
      failure(
        2,
        `${state} is the state of a pull ${how} --include customFields: use another file for --state, or run with ` +
          "--anew, which prints all rows again",
      );
    await run("--resource", "subscriptions");
    expect(readFileSync(state, "utf8")).not.toContain("include");
    expect(await run(...INCLUDE)).toEqual(refused("without"));
    expect(rowsIn((await run(...INCLUDE, "--anew")).stdout)).toHaveLength(2);
    expect(await run("--resource", "subscriptions")).toEqual(refused("with"));
    expect(rowsIn((await run("--resource", "subscriptions", "--anew")).stdout)).toHaveLength(2);
  });

  test("is refused with another resource, another value, and a state of another form", async () => {
    const { run, state } = await shopWithFields();
    expect(await run("--include", "customFields")).toEqual(
      failure(2, "--include customFields needs --resource subscriptions"),
    );
    expect(await run("--resource", "subscriptions", "--include", "lines")).toEqual(
      failure(2, '--include is "lines": it must be one of customFields'),
    );
    await run(...CSV);
    const stored = JSON.parse(readFileSync(state, "utf8"));
    for (const wrong of [{ include: "lines" }, { fieldKeys: "note" }, { fieldKeys: [1] }]) {
      writeFileSync(state, JSON.stringify({ ...stored, ...wrong }));
      expect(await run(...CSV)).toEqual(
        failure(2, `${state} is not a state of sds pull: name another file for --state`),
      );
    }
  });
});
