import { Command } from "commander";

export interface JsonFlag {
  json?: boolean;
}

/** A command, with the options and the help that many commands share. */
export class SdsCommand extends Command {
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
