import type { Command } from "commander";
import { invalid, SdsError } from "../domain/error.ts";
import { counted } from "../lib/text.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { withShop } from "./context.ts";
import { printJson, tell } from "./print.ts";

export function addCustomerCommands(program: SdsCommand): void {
  const customer = program
    .command("customer")
    .description("export what is stored about a customer, to answer their request for it")
    .examples("sds customer export gid://shopify/Customer/7");

  customer
    .command("export <gid>")
    .description(
      "print everything that is stored about a customer, always as JSON, to answer the customer's request for it",
    )
    .shopAndJsonOptions()
    .examples("sds customer export gid://shopify/Customer/7 > customer-7.json")
    .action(async (text: string, _options: object, command: Command) => {
      const gid = parseGid(text);
      const found = await withShop(command, (store, shop) => store.people.export(shop, gid));
      if (found === undefined) throw new SdsError("not_found", `there is no customer ${gid}`);
      printJson(found, 2);
    });

  customer
    .command("answered <gid>")
    .description("note that a customer's requests for their data are answered; `sds shop show` lists the open ones")
    .shopAndJsonOptions()
    .examples("sds customer answered gid://shopify/Customer/7")
    .action(async (text: string, { json }: JsonFlag, command: Command) => {
      const gid = parseGid(text);
      const answered = await withShop(command, (store, shop) => store.dataRequests.answer(shop.id, gid, Date.now()));
      if (answered === 0) throw new SdsError("not_found", `there is no open request for the data of ${gid}`);
      if (json) printJson({ answered });
      else tell(`Noted ${counted(answered, "request", "requests")} as answered.`);
    });
}

/** Reads a customer's gid, or only its number. @throws SdsError `invalid` */
function parseGid(text: string): string {
  const gid = /^\d{1,20}$/.test(text) ? `gid://shopify/Customer/${text}` : text;
  if (/^gid:\/\/shopify\/Customer\/[1-9]\d{0,19}$/.test(gid)) return gid;
  throw invalid(`"${text}" is not a customer's gid: write it like gid://shopify/Customer/7`);
}
