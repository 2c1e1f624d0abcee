import { expect, test } from "bun:test";
import { Program } from "../support/program.ts";

test.skipIf(Bun.which("mandoc") === null)(
  "the manual page has every command, and mandoc finds nothing wrong",
  async () => {
    const program = new Program();
    const { stdout: page, status } = await program.run(["man"]);
    expect(status).toBe(0);
    const { stdout: help } = await program.run(["--help"]);
    const nouns = [...help.matchAll(/^ {2}([a-z]+) /gm)].map(([, noun]) => noun).filter((noun) => noun !== "help");
    expect(nouns.length).toBeGreaterThan(20);
    for (const noun of nouns) expect(page).toMatch(new RegExp(`^\\.It Cm ${noun}( |$)`, "m"));
    expect(page).not.toContain("__complete");
    const lint = Bun.spawnSync(["mandoc", "-T", "lint", "-W", "warning"], { stdin: Buffer.from(page) });
    expect({ out: lint.stdout.toString() + lint.stderr.toString(), status: lint.exitCode }).toEqual({
      out: "",
      status: 0,
    });
  },
);
