import type { Command } from "commander";
import { type Config, httpAddress } from "../config.ts";
import { hashToken, LINK_LIFE, newToken } from "../domain/session.ts";
import { isoUtc } from "../lib/time.ts";
import type { Store } from "../store/store.ts";
import { chooseShop, configOf, example, JSON_OPTION, randomBytes, SHOP_OPTION, withStore } from "./context.ts";
import { printJson, printLine, tell } from "./print.ts";

interface Options {
  shop?: string;
  json?: boolean;
}

export function addAdminCommands(program: Command): void {
  const admin = program.command("admin").description("who may open a shop's settings page").addHelpText("after", example("sds admin link"));

  admin
    .command("link")
    .description("print an address that signs in to the shop's settings page, once, within ten minutes")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds admin link", "SDS_PUBLIC_URL=https://sds.example.com sds admin link --shop alpha.myshopify.com"))
    .action(async (options: Options, command: Command) => {
      const config = configOf(command);
      const { link, domain } = await withStore(command, async (store) => {
        const shop = await chooseShop(store, options.shop);
        return { domain: shop.domain, link: await makeLink(store, shop.id, config, Date.now()) };
      });
      if (options.json) return printJson({ url: link.url, expiresAt: isoUtc(link.expiresAt) });
      printLine(link.url);
      tell(`Open it in a browser within ten minutes. It works once, and signs in to the settings of ${domain}.`);
    });

  admin
    .command("sign-out")
    .description("end all sessions of the shop's settings page, and links that nobody used")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds admin sign-out"))
    .action(async (options: Options, command: Command) => {
      const ended = await withStore(command, async (store) => store.sessions.endAll((await chooseShop(store, options.shop)).id, Date.now()));
      if (options.json) printJson({ ended });
      else tell(ended === 1 ? "Ended one session." : `Ended ${ended} sessions.`);
    });
}

/** Makes a one-time address. @returns it, with the time until which it is good */
async function makeLink(store: Store, shopId: number, config: Config, now: number): Promise<{ url: string; expiresAt: number }> {
  const token = newToken(randomBytes);
  const expiresAt = now + LINK_LIFE;
  const base = config.publicUrl ?? (await store.sessions.address()) ?? httpAddress(config.host, config.port);
  await store.sessions.addLink(shopId, hashToken(token), now, expiresAt);
  return { url: `${reachable(base)}/admin/sign-in?token=${token}`, expiresAt };
}

/** Where a server listens on every address of the machine, a browser on this one goes to its own. */
function reachable(base: string): string {
  return base.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");
}
