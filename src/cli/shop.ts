import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { PLANS, parseCurrency, parseDomain, parsePlan, type Shop } from "../domain/shop.ts";
import { isoUtc } from "../domain/time.ts";
import { example, findShop, JSON_OPTION, withStore } from "./context.ts";
import { printFields, printJson, printTable, tell } from "./print.ts";

interface Options {
  json?: boolean;
  plan?: string;
  currency?: string;
  yes?: boolean;
}

const PLAN_HELP = `one of ${PLANS.join(", ")}`;

export function addShopCommands(program: Command): void {
  const shop = program.command("shop").description("add, list, change and remove shops").addHelpText("after", example("sds shop add alpha.myshopify.com"));

  shop
    .command("add <domain>")
    .description("add a shop by its platform domain")
    .option("--plan <plan>", PLAN_HELP, "pro")
    .option("--currency <code>", "the shop's currency, ISO 4217", "USD")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop add alpha.myshopify.com --plan free+addon --currency EUR"))
    .action(async (domain: string, options: Options, command: Command) => {
      const wanted = { domain: parseDomain(domain), plan: parsePlan(options.plan ?? "pro"), currency: parseCurrency(options.currency ?? "USD") };
      const added = await withStore(command, (store) => store.shops.add(wanted, Date.now()));
      show(added, options);
    });

  shop
    .command("list")
    .description("list all shops")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop list"))
    .action(async (options: Options, command: Command) => {
      const shops = await withStore(command, (store) => store.shops.list());
      if (options.json) printJson(shops.map(shown));
      else if (shops.length === 0) tell("There is no shop yet. Add one with `sds shop add alpha.myshopify.com`.");
      else
        printTable(
          ["DOMAIN", "PLAN", "CURRENCY", "CREATED"],
          shops.map((each) => Object.values(shown(each))),
        );
    });

  shop
    .command("show <domain>")
    .description("show one shop")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop show alpha.myshopify.com"))
    .action(async (domain: string, options: Options, command: Command) => {
      show(await withStore(command, (store) => findShop(store, domain)), options);
    });

  shop
    .command("set <domain>")
    .description("change a shop's plan or currency")
    .option("--plan <plan>", PLAN_HELP)
    .option("--currency <code>", "ISO 4217")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop set alpha.myshopify.com --plan free"))
    .action(async (domain: string, options: Options, command: Command) => {
      const change = {
        ...(options.plan !== undefined && { plan: parsePlan(options.plan) }),
        ...(options.currency !== undefined && { currency: parseCurrency(options.currency) }),
      };
      if (Object.keys(change).length === 0) throw new SdsError("invalid", "say what to change: --plan or --currency");
      const known = parseDomain(domain);
      show(await withStore(command, (store) => store.shops.set(known, change)), options);
    });

  shop
    .command("remove <domain>")
    .description("remove a shop with its keys and all that is mirrored of it")
    .option("--yes", "really remove it")
    .addHelpText("after", example("sds shop remove alpha.myshopify.com --yes"))
    .action(async (domain: string, options: Options, command: Command) => {
      await withStore(command, async (store) => {
        const { domain: known } = await findShop(store, domain);
        if (options.yes !== true) throw new SdsError("invalid", `this removes ${known} with its keys and all that is mirrored of it: say --yes to do so`);
        await store.shops.remove(known);
      });
      tell(`Removed ${domain}.`);
    });
}

function shown({ domain, plan, currency, createdAt }: Shop) {
  return { domain, plan, currency, createdAt: isoUtc(createdAt) };
}

function show(shop: Shop, options: Options): void {
  if (options.json) printJson(shown(shop));
  else printFields(shown(shop));
}
