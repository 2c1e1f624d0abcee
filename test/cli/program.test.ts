import { expect, test } from "bun:test";
import type { Command } from "commander";
import { buildProgram, commandIn } from "../../src/cli/program.ts";
import { SETTING_NAMES } from "../../src/setting-names.ts";

/** Returns a command and all commands below it. */
function tree(command: Command): Command[] {
  return [command, ...command.commands.flatMap(tree)];
}

function helpOf(command: Command): string {
  let help = "";
  command.configureOutput({
    writeOut: (text) => {
      help += text;
    },
  });
  command.outputHelp();
  return help;
}

test("every command has a description, and help that ends with examples", async () => {
  const commands = tree(await buildProgram());
  expect(commands.length).toBeGreaterThan(40);
  for (const command of commands) {
    expect(command.description()).not.toBe("");
    expect(helpOf(command)).toMatch(/\nExample:\n {2}\$ (\w+=\S+ )*sds /);
  }
});

test("the lines of every help fit 80 columns, and required options say so", async () => {
  for (const command of tree(await buildProgram())) {
    const help = helpOf(command);
    expect(help.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(help).not.toContain("\n\n\n");
    for (const { mandatory, long } of command.options)
      if (mandatory) expect(help.replaceAll(/\s+/g, " ")).toMatch(new RegExp(`${long} .*\\(required\\)`));
  }
});

test("every help names only known settings, each once", async () => {
  const lists = tree(await buildProgram()).map((command) => {
    const names = /Settings, see `sds docs operating`: ([^.]*)\./.exec(helpOf(command))?.[1];
    return names === undefined ? [] : names.split(/,\s+/);
  });
  expect(lists.filter((names) => names.length > 0).length).toBeGreaterThan(30);
  for (const names of lists) {
    expect(names.filter((name) => !SETTING_NAMES.includes(name))).toEqual([]);
    expect(names).toEqual([...new Set(names)]);
  }
});

test("for each command, the program loads a file that has this command", async () => {
  const { commands } = await buildProgram();
  for (const name of commands.map((each) => each.name()).filter((each) => each !== "help")) {
    const alone = await buildProgram(name);
    expect(alone.commands.map((each) => each.name())).toContain(name);
    expect(alone.commands.length).toBeLessThan(4);
  }
});

test.each([
  ["key create --label serve", "key"],
  ["--data key shop list", "shop"],
  ["--data=d --no-copy restore f", "restore"],
  ["help import", "import"],
  ["--no-copy help doctor", "doctor"],
  ["__find-damage", "__find-damage"],
  ["", undefined],
  ["--data serve", undefined],
  ["--help key", undefined],
  ["--no-copy help", undefined],
  ["--no-copy help help key", undefined],
  ["kye import", undefined],
  ["constructor", undefined],
  ["-- key", undefined],
  ["man", undefined],
  ["__complete -- key", undefined],
])("of the line `sds %s`, the program loads %s", (line, command) => {
  expect(commandIn(line.split(" ").filter((word) => word !== ""))).toBe(command);
});
