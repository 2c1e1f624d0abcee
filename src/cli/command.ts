import { Command, type ErrorOptions, type Help, type Option } from "commander";

/** The hidden command that prints completions. The functions that `sds completions` prints call it. */
export const COMPLETE = "__complete";

/** The hidden command that searches a database for damage. `sds doctor` runs it as a process, which it can stop. */
export const FIND_DAMAGE = "__find-damage";

export interface JsonFlag {
  json?: boolean;
}

/** A command, with the options and the help that many commands share. */
export class SdsCommand extends Command {
  override createHelp(): Help {
    const help = super.createHelp();
    const term = help.subcommandTerm.bind(help);
    const description = help.optionDescription.bind(help);
    return Object.assign(help, {
      // Without `[options]`, the help fits in 80 columns.
      subcommandTerm: (command: Command) => term(command).replace(" [options]", ""),
      optionDescription: (option: Option) => `${description(option)}${option.mandatory ? " (required)" : ""}`,
    });
  }

  override createCommand(name?: string): SdsCommand {
    return new SdsCommand(name);
  }

  /** If the command line lacks something, adds the usage to the error message. */
  override error(message: string, options?: ErrorOptions): never {
    const isLacking = options?.code?.startsWith("commander.missing") ?? false;
    const usage = isLacking ? `; usage: ${super.createHelp().commandUsage(this)}` : "";
    return super.error(`${message}${usage}`, options);
  }

  jsonOption(): this {
    return this.option("--json", "print JSON");
  }

  /** Adds `--shop`, which `withShop` reads. */
  shopOption(): this {
    return this.option("--shop <domain>", "the shop; can be left out if there is only one (env SDS_SHOP)");
  }

  shopAndJsonOptions(): this {
    return this.shopOption().jsonOption();
  }

  /** Adds examples to the end of the help. */
  examples(...lines: string[]): this {
    return this.addHelpText("after", `\nExample:\n${lines.map((line) => `  $ ${line}`).join("\n")}`);
  }
}
