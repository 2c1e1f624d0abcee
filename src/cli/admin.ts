import type { Command } from "commander";
import { audited } from "../actions/audit.ts";
import { hashToken, LINK_LIFE_MS, newToken } from "../actions/session.ts";
import type { Shop } from "../domain/shop.ts";
import { browsable, httpAddress } from "../lib/networks.ts";
import { counted } from "../lib/text.ts";
import { isoUtc } from "../lib/time.ts";
import type { Store } from "../store/port/store.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, operator, withShop } from "./context.ts";
import { randomBytes } from "./dependencies.ts";
import { printJson, printLine, tell } from "./print.ts";

export function addCommands(program: SdsCommand): void {
  const admin = program
    .command("admin")
    .description("let people into a shop's settings page, or sign them out")
    .examples("sds admin link");

  admin
    .command("link")
    .description("print a sign-in link to the shop's settings page; it works once, within ten minutes")
    .shopAndJsonOptions()
    .examples("sds admin link", "SDS_PUBLIC_URL=https://sds.example.com sds admin link")
    .action(link);

  admin
    .command("sign-out")
    .description("end all sessions of the shop's settings page, and make unused sign-in links invalid")
    .shopAndJsonOptions()
    .examples("sds admin sign-out")
    .action(async ({ json }: JsonFlag, command: Command) => {
      const ended = await withShop(command, (store, shop) =>
        audited(store, { shop, actor: operator() }, Date.now(), "sessions.ended").sessions.endAll(shop.id, Date.now()),
      );
      if (json) printJson({ ended });
      else tell(`Ended ${counted(ended, "session", "sessions")}.`);
    });
}

async function link({ json }: JsonFlag, command: Command): Promise<void> {
  const { publicUrl, host, port } = configOf(command);
  const addresses = { publicUrl, configuredUrl: httpAddress(host, port) };
  const { domain, url, expiresAt } = await withShop(command, async (store, shop) => {
    const noted = audited(store, { shop, actor: operator() }, Date.now(), "link.made");
    const made = await createSignInLink({ store: noted, random: randomBytes }, { shop, ...addresses }, Date.now());
    return { domain: shop.domain, ...made };
  });
  if (json) return printJson({ url, expiresAt: isoUtc(expiresAt) });
  printLine(url);
  tell(`Open this link in a browser within ten minutes. It works once, and opens the settings of ${domain}.`);
}

interface LinkRequest {
  shop: Shop;
  /** SDS_PUBLIC_URL; null if it is not set. */
  publicUrl: string | null;
  /** The address on which `serve` listens, according to the settings. */
  configuredUrl: string;
}

/** Makes a sign-in link. Its base is the public URL, else the address of a running `serve`, else `configuredUrl`. */
export async function createSignInLink(
  { store: { sessions }, random }: { store: Pick<Store, "sessions">; random: (bytes: number) => Uint8Array },
  { shop, publicUrl, configuredUrl }: LinkRequest,
  now: number,
): Promise<{ url: string; expiresAt: number }> {
  const token = newToken(random);
  const expiresAt = now + LINK_LIFE_MS;
  const base = publicUrl ?? (await sessions.address()) ?? configuredUrl;
  await sessions.addLink(shop.id, hashToken(token), expiresAt);
  return { url: `${browsable(base)}/admin/sign-in?token=${token}`, expiresAt };
}
