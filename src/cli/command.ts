import { Command, type Help, type Option } from "commander";

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
      // Without this word, the descriptions have room for 80 columns.
      subcommandTerm: (command: Command) => term(command).replace(" [options]", ""),
      optionDescription: (option: Option) => `${description(option)}${option.mandatory ? " (required)" : ""}`,
    });
  }

  override createCommand(name?: string): SdsCommand {
    return new SdsCommand(name);
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
    return this.addHelpText("after", `\nExample:\n${lines.map((line) => `  $ ${line}`).join("\n")}\n`);
  }
}
