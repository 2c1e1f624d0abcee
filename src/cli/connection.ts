import type { Command } from "commander";
import { audited } from "../actions/audit.ts";
import { type Config, readTextFile } from "../config.ts";
import { invalid, SdsError } from "../domain/error.ts";
import { parseNewDomain, type Shop } from "../domain/shop.ts";
import { createLog, type LogLevel } from "../lib/log.ts";
import { createRecordWriter } from "../mirror/record-writer.ts";
import { readAppKey } from "../shopify/api/app-key.ts";
import type { Credentials } from "../shopify/install/connect.ts";
import { openPlatform, type Platform } from "../shopify/open-platform.ts";
import type { Store } from "../store/port/store.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, findShop, operator, withStore } from "./context.ts";
import { dependencies } from "./dependencies.ts";
import { printJson, tell, warn } from "./print.ts";
import { secretFileWarnings } from "./secret-files.ts";
import { readSecret } from "./stdin.ts";

/** Warning if the platform shows no contract: another app bills, or the shop sells no subscriptions yet. */
export const NO_CONTRACTS =
  "the platform shows this app no subscription contracts. It shows an app only the contracts that the app made, " +
  "so sds needs the client id of the app that bills";

interface CredentialFlags {
  clientCredentials?: boolean;
  tokenStdin?: boolean;
  refreshTokenStdin?: boolean;
  appKeyFile?: string;
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
    .option(
      "--app-key-file <file>",
      "use the app's own private key, a PEM or a JWK, which is stored encrypted; for apps with public distribution",
    )
    .jsonOption()
    .examples(
      "sds shop connect alpha.myshopify.com --client-credentials",
      "sds shop connect alpha.myshopify.com --token-stdin < token.txt",
      "sds shop connect alpha.myshopify.com --app-key-file app-key.pem",
    )
    .action(connectShop);

  shop
    .command("disconnect <domain>")
    .description("delete a shop's tokens for the platform; its mirror stays")
    .jsonOption()
    .examples("sds shop disconnect alpha.myshopify.com")
    .action(async (domain: string, { json }: JsonFlag, command: Command) => {
      const hadTokens = await withStore(command, async (store) => {
        const shop = await findShop(store, domain);
        const { connections } = audited(store, { shop, actor: operator() }, Date.now(), "shop.disconnected");
        return connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
      });
      if (!hadTokens) throw new SdsError("not_found", `${domain} is not connected`);
      if (json) printJson({ domain });
      else tell(`Disconnected ${domain}.`);
    });
}

async function connectShop(text: string, options: JsonFlag & CredentialFlags, command: Command): Promise<void> {
  const domain = parseNewDomain(text);
  const credentials = await readCredentials(options);
  const config = configOf(command);
  const { shop, scopes, kind, hasContracts, missing } = await withStore(command, async (store) => {
    const platform = platformOf(config, store);
    const connection = await platform.connect(domain, credentials, operator());
    const hasContracts = await platform.hasContracts(connection.shop);
    return { ...connection, hasContracts, missing: await missingLevels(config, store, connection.shop) };
  });
  if (options.json) printJson({ domain, plan: shop.plan, currency: shop.currency, kind, scopes });
  else {
    const next = `\`sds serve\` loads it; \`sds sync ${domain}\` shows the progress, or loads it without \`serve\`.`;
    tell(`Connected ${domain} (${shop.currency}, plan ${shop.plan}). ${next}`);
  }
  if (!hasContracts) warn([NO_CONTRACTS]);
  warn(missing);
}

/** Opens the platform's adapter for one command. It logs warnings and errors, unless SDS_LOG sets another level. */
export function platformOf(
  config: Config,
  store: Store,
  level: LogLevel = config.logLevel === "info" ? "warn" : config.logLevel,
): Platform {
  const log = createLog(level, process.stderr, Date.now);
  return openPlatform(config, store, createRecordWriter(store.mirror, Date.now), {
    ...dependencies(config.logLevel),
    log,
  });
}

/** Returns warnings about data that the app is not allowed to read. The caller prints them, so they are not logged. */
export function missingLevels(config: Config, store: Store, shop: Shop): Promise<string[]> {
  return platformOf(config, store, "error").missingLevels(shop);
}

/** Reads the app's own private key, and warns if other users can read the file. @throws SdsError `invalid` */
export function readAppKeyFile(file: string): string {
  warn(secretFileWarnings(file));
  return readAppKey(readTextFile("the app's key", file));
}

async function readCredentials(options: CredentialFlags): Promise<Credentials> {
  const { clientCredentials, tokenStdin, refreshTokenStdin, appKeyFile } = options;
  if ([clientCredentials, tokenStdin, refreshTokenStdin, appKeyFile].filter(Boolean).length !== 1)
    throw invalid(
      "say how to connect: with one of --client-credentials, --app-key-file, --token-stdin and --refresh-token-stdin",
    );
  if (appKeyFile !== undefined) return { kind: "app_key", appKey: readAppKeyFile(appKeyFile) };
  if (clientCredentials) return { kind: "client_credentials" };
  return tokenStdin
    ? { kind: "token", token: await readSecret("token") }
    : { kind: "refresh", refreshToken: await readSecret("refresh token") };
}
