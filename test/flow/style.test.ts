import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { failure, Program } from "../support/program.ts";

const STYLE = ".button { color: #123456 }\n";
const PATH = "/storefront/alpha.myshopify.com/widget.css";

describe("style", () => {
  test("is set, served at once, shown and cleared", async () => {
    const program = await Program.withShop();
    const { url } = await program.serve();
    const served = async () => (await fetch(`${url}${PATH}`)).text();
    const file = join(temporaryFolder(), "widget.css");
    await Bun.write(file, STYLE);
    expect(await program.json(["style", "show"])).toEqual({ bytes: 0, source: "" });
    expect(await program.json(["style", "set", file])).toEqual({ bytes: STYLE.length });
    expect(await served()).toContain(".sds-widget:scope .button{color:#123456;}");
    expect((await program.run(["style", "show"])).stdout).toBe(STYLE);
    expect(await program.json(["style", "show"])).toEqual({ bytes: STYLE.length, source: STYLE });
    await program.run(["style", "set", "-"], { stdin: STYLE.replace("#123456", "red") });
    expect(await served()).toContain("color:red");
    const head = await fetch(`${url}${PATH}`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-type"), await head.text()]).toEqual([
      200,
      "text/css; charset=utf-8",
      "",
    ]);
    expect(await program.json(["style", "clear"])).toEqual({ bytes: 0 });
    expect(await served()).toBe("");
    expect(await program.run(["style", "clear"])).toEqual({
      status: 0,
      stdout: "",
      stderr: "The widget had no style.\n",
    });
  });

  test.each([
    [".a {}\n  @import 'x.css';", "line 2, column 3: The rule @import is not allowed: a style can't load other files."],
    [".a { color: red", "line 1, column "],
    [`/*${"x".repeat(65_536)}*/`, "this style is too large: it may have at most 65536 bytes"],
    [Uint8Array.from([0x2e, 0x61, 0xff]), "the style is not UTF-8"],
  ])("%#. a refused text is not saved", async (stdin, message) => {
    const program = await Program.withShop();
    await program.run(["style", "set", "-"], { stdin: STYLE });
    const refused = await program.run(["style", "set", "-"], { stdin });
    expect({ status: refused.status, stdout: refused.stdout }).toEqual({ status: 2, stdout: "" });
    expect(refused.stderr).toStartWith(`sds: ${message}`);
    expect((await program.run(["style", "show"])).stdout).toBe(STYLE);
  });

  test("a style of 64 KiB is saved, and a file that is missing is named", async () => {
    const program = await Program.withShop();
    const largest = `/*${"x".repeat(65_532)}*/`;
    expect(await program.json(["style", "set", "-"])).toEqual({ bytes: 0 });
    const saved = await program.run(["style", "set", "-", "--json"], { stdin: largest });
    expect(saved.stdout).toBe('{"bytes":65536}\n');
    expect(await program.run(["style", "set", "/no/file.css"])).toEqual(failure(3, "there is no file /no/file.css"));
  });

  test("a style cannot control the terminal that shows it, and a pipe gets it unchanged", async () => {
    const program = await Program.withShop();
    const style = "/* \u001b[31m */ .a { color: red }\n";
    await program.run(["style", "set", "-"], { stdin: style });
    expect((await program.run(["style", "show"])).stdout).toBe(style);
    const { shown } = await program.answer(["style", "show"], "");
    expect(shown).toBe("/* <U+001B>[31m */ .a { color: red }\r\n");
  });

  test("on a plan without access it is saved with a warning", async () => {
    const program = await Program.withShop();
    await program.run(["shop", "set", "alpha.myshopify.com", "--plan", "free"]);
    const { stderr } = await program.run(["style", "set", "-"], { stdin: STYLE });
    expect(stderr).toStartWith("sds: warning: this shop's plan has no widget style: it comes with the Pro plan");
  });
});
