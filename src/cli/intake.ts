import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { withShop } from "./context.ts";
import { addNoun, onShop } from "./options.ts";
import { printSecret } from "./print.ts";

export function addIntakeCommands(program: Command): void {
  const intake = addNoun(
    program,
    "intake",
    "show what the billing system needs to post records to /intake",
    "sds intake secret",
  );

  onShop(
    intake.command("secret").description("print the shop's intake secret, which signs every post to /intake"),
    "sds intake secret --shop alpha.myshopify.com",
  ).action(async (options: { json?: boolean }, command: Command) => {
    const found = await withShop(command, (store, shop) => store.shops.intakeSecret(shop.domain));
    if (found === undefined) throw new SdsError("not_found", "the shop was removed");
    printSecret(found.secret, options);
  });
}
