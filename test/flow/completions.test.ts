import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { PROGRAM, Program } from "../support/program.ts";

const SHOP = "alpha.myshopify.com";

async function complete(program: Program, ...words: string[]): Promise<string[]> {
  const { status, stdout, stderr } = await program.run(["__complete", "--", ...words]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.split("\n").slice(0, -1);
}

describe("the candidates for the last word", () => {
  test.each([
    [["sho"], ["shop"]],
    [
      ["admin", ""],
      ["link", "sign-out", "help"],
    ],
    [["shop", "show", "a"], [SHOP]],
    [["shop", "add", ""], []],
    [["sync", ""], [SHOP]],
    [["key", "list", "--shop", ""], [SHOP]],
    [
      ["delivery", "list", "--status", "de"],
      ["delivered", "dead"],
    ],
    [
      ["delivery", "list", "--limit", "5", "--s"],
      ["--status", "--subject", "--shop"],
    ],
    [["webhook", "set", "--topics", "order.charged,order.f"], ["order.charged,order.failed"]],
    [
      ["shop", "set", SHOP, "--triggers", "subscription-c"],
      ["subscription-created", "subscription-cancelled"],
    ],
    [["docs", "quick"], ["quick-start"]],
    [
      ["completions", ""],
      ["bash", "zsh", "fish"],
    ],
    [["backup", ""], []],
    [["--da"], ["--data"]],
    [["nothing", "show", ""], []],
  ])("of %j are %j", async (words, expected) => {
    expect(await complete(await Program.withShop(), ...words)).toEqual(expected);
  });

  test("of an empty folder, or a file that is no database, are not shops, and nothing is made", async () => {
    const empty = new Program();
    expect(await complete(empty, "shop", "show", "")).toEqual([]);
    expect(existsSync(empty.data)).toBe(false);
    mkdirSync(empty.data, { recursive: true });
    writeFileSync(join(empty.data, "sds.db"), "no database");
    expect(await complete(empty, "shop", "show", "")).toEqual([]);
  });

  test("are of the folder that the words name", async () => {
    const { data } = await Program.withShop();
    expect(await complete(new Program(), "--data", data, "shop", "show", "")).toEqual([SHOP]);
  });
});

/** Each shell, the arguments that start it without the user's files, and the line that loads the completions. */
const SHELLS: [shell: string, start: string[], load: string][] = [
  ["bash", ["--norc", "-i"], "source <(sds completions bash)"],
  ["zsh", ["-f", "-i"], "autoload -U compinit; compinit -u -D; source <(sds completions zsh)"],
  ["fish", ["--no-config", "-i"], "sds completions fish | source"],
];

for (const [shell, start, load] of SHELLS) {
  test.skipIf(Bun.which(shell) === null)(`${shell} completes a shop when somebody presses Tab`, async () => {
    const program = await Program.withShop();
    const folder = temporaryFolder();
    writeFileSync(join(folder, "sds"), `#!/bin/sh\nexec ${PROGRAM.join(" ")} "$@"\n`, { mode: 0o755 });
    const environment = await program.environment({ TERM: "xterm", HOME: folder });
    let shown = "";
    const child = Bun.spawn([shell, ...start], {
      env: { ...environment, PATH: `${folder}:${environment["PATH"]}` },
      cwd: folder,
      terminal: {
        data: (_, bytes) => {
          shown += stripVTControlCharacters(Buffer.from(bytes).toString());
        },
      },
    });
    afterTest(async () => {
      child.kill("SIGKILL");
      await child.exited;
    });
    child.terminal?.write(`${load}; echo load''ed\n`);
    await eventually(() => shown.includes("loaded"));
    child.terminal?.write("sds shop show al\t");
    await eventually(() => shown.includes(`sds shop show ${SHOP}`));
    // Control-A moves to the start of the line.
    child.terminal?.write("\u0001echo GOT \n");
    await eventually(() => /[\r\n]GOT sds shop show alpha\.myshopify\.com/.test(shown));
  });
}
