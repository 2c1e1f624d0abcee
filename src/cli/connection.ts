import type { Command } from "commander";
import type { Config } from "../config.ts";
import { invalid, SdsError } from "../domain/error.ts";
import { parseNewDomain } from "../domain/shop.ts";
import { createLog } from "../lib/log.ts";
import { createRecordWriter } from "../mirror/record-writer.ts";
import type { Credentials } from "../shopify/install/connect.ts";
import { openPlatform, type Platform } from "../shopify/open-platform.ts";
import type { Store } from "../store/port/store.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, findShop, withStore } from "./context.ts";
import { dependencies } from "./dependencies.ts";
import { printJson, tell, warn } from "./print.ts";
import { readSecret } from "./stdin.ts";

/** Warning if the platform shows no contract: another app bills, or the shop sells no subscriptions yet. */
export const NO_CONTRACTS =
  "the platform shows this app no subscription contracts. It shows an app only the contracts that the app made, " +
  "so sds needs the client id of the app that bills";

interface CredentialFlags {
  clientCredentials?: boolean;
  tokenStdin?: boolean;
  refreshTokenStdin?: boolean;
}

/** Adds `connect` and `disconnect` to the commands of shops. */
export function addConnectionCommands(shop: SdsCommand): void {
  shop
    .command("connect <domain>")
    .description("connect a shop to the platform; adds the shop if it does not exist")
    .option(
      "--client-credentials",
      "use the app's own client id (SDS_PLATFORM_CLIENT_ID) and secret (SDS_PLATFORM_SECRET_FILE)",
    )
    .option("--token-stdin", "use an access token that does not expire, read from stdin")
    .option(
      "--refresh-token-stdin",
      "use a refresh token, read from stdin; it is exchanged for an access token and a new refresh token",
    )
    .jsonOption()
    .examples(
      "sds shop connect alpha.myshopify.com --client-credentials",
      "sds shop connect alpha.myshopify.com --token-stdin < token.txt",
    )
    .action(connectShop);

  shop
    .command("disconnect <domain>")
    .description("delete a shop's tokens for the platform; its mirror stays")
    .examples("sds shop disconnect alpha.myshopify.com")
    .action(async (domain: string, _options: object, command: Command) => {
      const hadTokens = await withStore(command, async (store) =>
        store.connections.disconnect((await findShop(store, domain)).id, Number.MAX_SAFE_INTEGER),
      );
      if (!hadTokens) throw new SdsError("not_found", `${domain} is not connected`);
      tell(`Disconnected ${domain}.`);
    });
}

async function connectShop(text: string, options: JsonFlag & CredentialFlags, command: Command): Promise<void> {
  const domain = parseNewDomain(text);
  const credentials = await readCredentials(options);
  const config = configOf(command);
  const { shop, scopes, kind, hasContracts } = await withStore(command, async (store) => {
    const platform = platformOf(config, store);
    const connection = await platform.connect(domain, credentials);
    return { ...connection, hasContracts: await platform.hasContracts(connection.shop) };
  });
  if (options.json) printJson({ domain, plan: shop.plan, currency: shop.currency, kind, scopes });
  else tell(`Connected ${domain} (${shop.currency}, plan ${shop.plan}). Load it with \`sds sync ${domain}\`.`);
  if (!hasContracts) warn([NO_CONTRACTS]);
}

/** Opens the platform's adapter for one command. It logs warnings and errors, unless SDS_LOG sets another level. */
export function platformOf(config: Config, store: Store): Platform {
  const log = createLog(config.logLevel === "info" ? "warn" : config.logLevel, process.stderr, Date.now);
  return openPlatform(config, store, createRecordWriter(store.mirror, Date.now), { ...dependencies(config), log });
}

async function readCredentials(options: CredentialFlags): Promise<Credentials> {
  const { clientCredentials, tokenStdin, refreshTokenStdin } = options;
  if ([clientCredentials, tokenStdin, refreshTokenStdin].filter(Boolean).length !== 1)
    throw invalid("say how to connect: one of --client-credentials, --token-stdin and --refresh-token-stdin");
  if (clientCredentials) return { kind: "client_credentials" };
  return tokenStdin
    ? { kind: "token", token: await readSecret("token") }
    : { kind: "refresh", refreshToken: await readSecret("refresh token") };
}
