import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { chooseShop, example, SHOP_OPTION, withStore } from "./context.ts";
import { printLine } from "./print.ts";

export function addCustomerCommands(program: Command): void {
  const customer = program
    .command("customer")
    .description("what is held of a person")
    .addHelpText("after", example("sds customer export gid://shopify/Customer/7"));

  customer
    .command("export <gid>")
    .description("print all that is held of a customer, as JSON, to answer a request for it")
    .option(...SHOP_OPTION)
    .option("--json", "print JSON, as it does anyway")
    .addHelpText("after", example("sds customer export gid://shopify/Customer/7 > customer-7.json"))
    .action(async (text: string, options: { shop?: string }, command: Command) => {
      const gid = /^\d{1,20}$/.test(text) ? `gid://shopify/Customer/${text}` : text;
      if (!/^gid:\/\/shopify\/Customer\/[1-9]\d{0,19}$/.test(gid))
        throw new SdsError("invalid", `"${text}" is not a customer's gid: write it like gid://shopify/Customer/7`);
      const found = await withStore(command, async (store) => store.people.export(await chooseShop(store, options.shop), gid));
      if (found === undefined) throw new SdsError("not_found", `there is no customer ${gid}`);
      printLine(JSON.stringify(found, null, 2));
    });
}
