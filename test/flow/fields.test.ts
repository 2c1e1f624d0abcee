import { describe, expect, test } from "bun:test";
import { failure, Program } from "../support/program.ts";
import { subscription } from "../support/records.ts";

const CONTRACT = subscription(1).shopifyId;
const SIZE = {
  key: "size",
  label: "Size",
  type: "choice",
  options: ["S", "M"],
  subscriberEditable: false,
  personal: false,
  archivedAt: null,
};

async function programWithContract(): Promise<Program> {
  const program = await Program.withShop();
  await program.run(["import", "-"], { stdin: JSON.stringify(subscription(1)) });
  return program;
}

describe("field", () => {
  test("is added, listed, changed, archived and brought back", async () => {
    const program = await Program.withShop();
    const added = ["field", "add", "size", "--label", "Size", "--type", "choice", "--options", "S,M"];
    expect(await program.json(added)).toEqual(SIZE);
    expect(await program.run(added)).toEqual(failure(1, "the field size exists already"));
    const changed = ["field", "set", "size", "--option", "S, slim", "--option", "M", "--subscriber-editable"];
    const larger = { ...SIZE, options: ["S, slim", "M"], subscriberEditable: true };
    expect(await program.json(changed)).toEqual(larger);
    const archived = await program.json<typeof SIZE>(["field", "archive", "size"]);
    expect(archived).toEqual({ ...larger, archivedAt: expect.stringMatching(/Z$/) });
    expect(await program.json<unknown>(["field", "list"])).toEqual([archived]);
    expect(await program.json(["field", "archive", "size", "--undo"])).toEqual(larger);
  });

  test("values are set, shown and cleared, and a wrong one changes nothing", async () => {
    const program = await programWithContract();
    await program.run(["field", "add", "size", "--label", "Size", "--type", "choice", "--options", "S,M"]);
    expect((await program.run(["field", "value", CONTRACT, "size", "M"])).stdout).toBe("M\n");
    expect(await program.run(["field", "value", "1", "size", "L"])).toEqual(
      failure(2, "the value of size must be one of S, M"),
    );
    const shown = { subscription: CONTRACT, key: "size", value: "M" };
    expect(await program.json(["field", "value", "1", "size"])).toEqual(shown);
    expect(await program.json(["field", "value", "1", "size", "--clear"])).toEqual({ ...shown, value: null });
    await program.run(["field", "add", "weight", "--label", "Weight", "--type", "number"]);
    expect(await program.json(["field", "value", "1", "weight", "-2.5"])).toMatchObject({ value: -2.5 });
  });

  test("a text that a subscriber wrote cannot control the terminal", async () => {
    const program = await programWithContract();
    await program.run(["field", "add", "note", "--label", "Note", "--type", "text"]);
    const typed = "two\nlines, \u001b[31mred";
    expect((await program.run(["field", "value", "1", "note", typed])).stdout).toBe(`${typed}\n`);
    const { shown } = await program.answer(["field", "value", "1", "note"], "");
    expect(shown).toBe("two\r\nlines, <U+001B>[31mred\r\n");
  });

  test("on a plan without access fields are defined, and values are set, with a warning", async () => {
    const program = await programWithContract();
    await program.run(["shop", "set", "alpha.myshopify.com", "--plan", "free"]);
    const warning = "sds: warning: this shop's plan has no custom fields: they come with the Pro plan";
    for (const args of [
      ["add", "note", "--label", "Note", "--type", "text"],
      ["set", "note", "--label", "Gift note"],
      ["archive", "note", "--undo"],
      ["value", "1", "note", "x"],
      ["value", "1", "note", "--clear"],
    ]) {
      const { status, stderr } = await program.run(["field", ...args]);
      expect([status, stderr]).toEqual([0, expect.stringContaining(warning)]);
    }
    for (const args of [["list"], ["value", "1", "note"], ["archive", "note"]])
      expect((await program.run(["field", ...args])).stderr).not.toContain("warning");
  });

  test.each([
    [["add", "Size", "--label", "Size", "--type", "text"], 2, "the key must be"],
    [["add", "size", "--label", "Size"], 2, "say --label and --type"],
    [["add", "size", "--label", "Size", "--type", "json"], 2, "--type is"],
    [["add", "size", "--label", "Size", "--type", "text", "--personal", "--not-personal"], 2, "say either --personal"],
    [["set", "note"], 2, "say what to set"],
    [["set", "unknown", "--label", "x"], 3, "there is no field unknown"],
    [["set", "note", "--options", "a", "--option", "b"], 2, "say either --options or --option"],
    [["archive", "unknown"], 3, "there is no field unknown"],
    [["value", "9", "note", "x"], 3, "there is no subscription 9"],
    [["value", "gid://shopify/Order/1", "note", "x"], 2, "is not the id or the gid of a subscription"],
    [["value", "1", "unknown", "x"], 3, "there is no field unknown"],
    [["value", "1", "old", "x"], 3, "the field old is archived"],
    [["value", "1", "old"], 3, "there is no field old, or it is archived"],
    [["value", "1", "note", "x", "--clear"], 2, "say either a value or --clear"],
  ])("%j is refused", async (args, status, message) => {
    const program = await programWithContract();
    await program.run(["field", "add", "note", "--label", "Note", "--type", "text"]);
    await program.run(["field", "add", "old", "--label", "Old", "--type", "text"]);
    await program.run(["field", "archive", "old"]);
    const refused = await program.run(["field", ...args]);
    expect({ status: refused.status, stdout: refused.stdout }).toEqual({ status, stdout: "" });
    expect(refused.stderr).toContain(message);
  });
});
