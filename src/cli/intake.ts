import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { chooseShop, example, JSON_OPTION, SHOP_OPTION, withStore } from "./context.ts";
import { printJson, printLine } from "./print.ts";

export function addIntakeCommands(program: Command): void {
  const intake = program
    .command("intake")
    .description("what the billing system needs to post records to /intake")
    .addHelpText("after", example("sds intake secret"));

  intake
    .command("secret")
    .description("print the shop's intake secret, which signs what is posted to /intake")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds intake secret --shop alpha.myshopify.com"))
    .action(async (options: { shop?: string; json?: boolean }, command: Command) => {
      const found = await withStore(command, async (store) => store.shops.intakeSecret((await chooseShop(store, options.shop)).domain));
      if (found === undefined) throw new SdsError("not_found", "the shop was removed");
      if (options.json) printJson({ secret: found.secret });
      else printLine(found.secret);
    });
}
