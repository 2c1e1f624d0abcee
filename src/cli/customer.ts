import type { Command } from "commander";
import { noteInAudit } from "../actions/audit.ts";
import { answerDataRequests, exportPerson } from "../actions/customer.ts";
import { invalid, SdsError } from "../domain/error.ts";
import { customerId } from "../domain/ids.ts";
import { MIN_PHONE_DIGITS } from "../domain/people/person.ts";
import type { Contacts, RedactionRecord } from "../domain/records/platform-records.ts";
import { counted } from "../lib/text.ts";
import { createRecordWriter } from "../mirror/record-writer.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { operator, withShop } from "./context.ts";
import { printJson, tell } from "./print.ts";
import { confirm } from "./stdin.ts";

export function addCommands(program: SdsCommand): void {
  const customer = program
    .command("customer")
    .description("export or remove what is stored about a customer")
    .examples("sds customer export gid://shopify/Customer/7");

  customer
    .command("export <gid>")
    .description(
      "print everything that is stored about a customer, always as JSON, to answer the customer's data request",
    )
    .shopAndJsonOptions()
    .examples("sds customer export gid://shopify/Customer/7 > customer-7.json")
    .action(async (text: string, _options: object, command: Command) => {
      const gid = parseGid(text);
      const found = await withShop(command, (store, shop) =>
        exportPerson(store, { shop, actor: operator() }, gid, Date.now()),
      );
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
      const answered = await withShop(command, (store, shop) =>
        answerDataRequests(store, { shop, actor: operator() }, gid, Date.now()),
      );
      if (answered === 0) throw new SdsError("not_found", `there is no open request for the data of ${gid}`);
      if (json) printJson({ answered });
      else tell(`Noted ${counted(answered, "request", "requests")} as answered.`);
    });

  customer
    .command("redact <gid>")
    .description("remove a customer's personal data for good, as the platform's customers/redact does")
    .option("--email <address>", "remove this e-mail address too, such as a former one", parseEmail)
    .option("--phone <number>", "remove this phone number too", parsePhone)
    .option("--yes", "really remove the data")
    .shopAndJsonOptions()
    .examples("sds customer redact gid://shopify/Customer/7 --email ada@old.example --yes")
    .action(redact);
}

type RedactFlags = JsonFlag & Contacts & { yes?: boolean };

async function redact(text: string, { email, phone, yes = false, json }: RedactFlags, command: Command): Promise<void> {
  const gid = parseGid(text);
  if (!yes) {
    const domain = await withShop(command, async (_store, shop) => shop.domain);
    // The store is closed during the confirmation prompt, which can take hours. An open store would block a restore.
    await confirm(`this removes the personal data of ${gid} at ${domain} for good`, yes);
  }
  const contacts = { ...(email !== undefined && { email }), ...(phone !== undefined && { phone }) };
  const isKnown = await withShop(command, async (store, shop) => {
    const row = await store.pages.find(shop.id, "customers", { id: customerId(shop.firstDomain, gid) });
    const record: RedactionRecord = { type: "redaction", shopifyId: gid, asOf: Date.now(), contacts };
    const result = await createRecordWriter(store.mirror, Date.now).submit({ shop, records: [record] });
    if ("refused" in result) throw new SdsError("not_found", "the shop was removed");
    await noteInAudit(store, { shop, actor: operator() }, Date.now(), "person.redacted", { subject: gid });
    return row !== undefined;
  });
  if (json) printJson({ redacted: gid });
  else tell(`Redacted ${gid}.`);
  if (!isKnown) tell(`${gid} was not in the mirror. Imports of older files will leave out the personal data.`);
}

/** Reads a customer's gid, or only its number. @throws SdsError `invalid` */
function parseGid(text: string): string {
  const gid = /^\d{1,20}$/.test(text) ? `gid://shopify/Customer/${text}` : text;
  if (/^gid:\/\/shopify\/Customer\/[1-9]\d{0,19}$/.test(gid)) return gid;
  throw invalid(`"${text}" is not a customer's gid: write it like gid://shopify/Customer/7`);
}

/** @throws SdsError `invalid` */
function parseEmail(text: string): string {
  const address = text.trim();
  if (/^[^\s@]+@[^\s@]+$/.test(address)) return address;
  throw invalid(`"${text}" is not an e-mail address`);
}

/** @throws SdsError `invalid` */
function parsePhone(text: string): string {
  if (text.replaceAll(/[^0-9]/g, "").length >= MIN_PHONE_DIGITS) return text;
  throw invalid(`"${text}" is not a phone number: write at least ${MIN_PHONE_DIGITS} digits`);
}
