import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { withShop } from "./context.ts";
import { addNoun, onShop } from "./options.ts";
import { printJson, tell } from "./print.ts";

export function addCustomerCommands(program: Command): void {
  const customer = addNoun(
    program,
    "customer",
    "export what is stored about a customer, to answer their request for it",
    "sds customer export gid://shopify/Customer/7",
  );

  onShop(
    customer
      .command("export <gid>")
      .description(
        "print everything that is stored about a customer, always as JSON, to answer the customer's request for it",
      ),
    "sds customer export gid://shopify/Customer/7 > customer-7.json",
  ).action(async (text: string, _options: object, command: Command) => {
    const gid = parseGid(text);
    const found = await withShop(command, (store, shop) => store.people.export(shop, gid));
    if (found === undefined) throw new SdsError("not_found", `there is no customer ${gid}`);
    printJson(found, 2);
  });

  onShop(
    customer
      .command("answered <gid>")
      .description("note that a customer's requests for their data are answered; `sds shop show` lists the open ones"),
    "sds customer answered gid://shopify/Customer/7",
  ).action(async (text: string, { json = false }: { json?: boolean }, command: Command) => {
    const gid = parseGid(text);
    const answered = await withShop(command, (store, shop) => store.dataRequests.answer(shop.id, gid, Date.now()));
    if (answered === 0) throw new SdsError("not_found", `there is no open request for the data of ${gid}`);
    if (json) return printJson({ answered });
    tell(`Noted ${answered} ${answered === 1 ? "request" : "requests"} as answered.`);
  });
}

/** Reads a customer's gid, or only its number. @throws SdsError `invalid` */
function parseGid(text: string): string {
  const gid = /^\d{1,20}$/.test(text) ? `gid://shopify/Customer/${text}` : text;
  if (/^gid:\/\/shopify\/Customer\/[1-9]\d{0,19}$/.test(gid)) return gid;
  throw new SdsError("invalid", `"${text}" is not a customer's gid: write it like gid://shopify/Customer/7`);
}
