import type { Command } from "commander";
import { createSignInLink } from "../actions/sign-in-link.ts";
import { httpAddress } from "../config.ts";
import { counted } from "../lib/text.ts";
import { isoUtc } from "../lib/time.ts";
import { configOf, withShop } from "./context.ts";
import { randomBytes } from "./dependencies.ts";
import { addNoun, onShop } from "./options.ts";
import { printJson, printLine, tell } from "./print.ts";

interface Options {
  json?: boolean;
}

export function addAdminCommands(program: Command): void {
  const admin = addNoun(program, "admin", "let people into a shop's settings page, or sign them out", "sds admin link");

  onShop(
    admin
      .command("link")
      .description("print a sign-in link to the shop's settings page; it works once, within ten minutes"),
    "sds admin link",
    "SDS_PUBLIC_URL=https://sds.example.com sds admin link --shop alpha.myshopify.com",
  ).action(async (options: Options, command: Command) => {
    const { publicUrl, host, port } = configOf(command);
    const { domain, url, expiresAt } = await withShop(command, async (store, shop) => ({
      domain: shop.domain,
      ...(await createSignInLink(
        { store, random: randomBytes },
        { shop, publicUrl, configuredUrl: httpAddress(host, port) },
        Date.now(),
      )),
    }));
    if (options.json) return printJson({ url, expiresAt: isoUtc(expiresAt) });
    printLine(url);
    tell(`Open this link in a browser within ten minutes. It works once, and opens the settings of ${domain}.`);
  });

  onShop(
    admin
      .command("sign-out")
      .description("end all sessions of the shop's settings page, and make unused sign-in links invalid"),
    "sds admin sign-out",
  ).action(async (options: Options, command: Command) => {
    const ended = await withShop(command, (store, shop) => store.sessions.endAll(shop.id, Date.now()));
    if (options.json) printJson({ ended });
    else tell(`Ended ${counted(ended, "session", "sessions")}.`);
  });
}
