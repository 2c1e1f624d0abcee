import type { Command } from "commander";
import type { Config } from "../config.ts";
import { SdsError } from "../domain/error.ts";
import { parseDomain } from "../domain/shop.ts";
import { createLog } from "../log.ts";
import { RecordWriter } from "../mirror/record-writer.ts";
import type { Credentials } from "../shopify/install/connect.ts";
import { openPlatform, type Platform } from "../shopify/open-platform.ts";
import type { Store } from "../store/store.ts";
import { configOf, example, findShop, JSON_OPTION, readSecret, withStore } from "./context.ts";
import { dependencies } from "./dependencies.ts";
import { printJson, tell } from "./print.ts";

interface Options {
  clientCredentials?: boolean;
  tokenStdin?: boolean;
  refreshTokenStdin?: boolean;
  json?: boolean;
}

/** Adds `connect` and `disconnect` to the commands of shops. */
export function addConnectCommands(shop: Command): void {
  shop
    .command("connect <domain>")
    .description("connect a shop to the platform; adds it if it isn't there")
    .option("--client-credentials", "with the app's own id (SDS_PLATFORM_CLIENT_ID) and secret (SDS_PLATFORM_SECRET_FILE)")
    .option("--token-stdin", "with a token for good, read on stdin")
    .option("--refresh-token-stdin", "with a refresh token, read on stdin, that is exchanged for the first pair of tokens")
    .option(...JSON_OPTION)
    .addHelpText(
      "after",
      example("sds shop connect alpha.myshopify.com --client-credentials", "sds shop connect alpha.myshopify.com --token-stdin < token.txt"),
    )
    .action(async (text: string, options: Options, command: Command) => {
      const domain = parseDomain(text);
      const credentials = await readCredentials(options);
      const config = configOf(command);
      const connected = await withStore(command, async (store) => {
        return platformOf(config, store).connect(domain, credentials);
      });
      const { shop: found, scopes, kind } = connected;
      if (options.json) printJson({ domain, plan: found.plan, currency: found.currency, kind, scopes });
      else tell(`Connected ${domain} (${found.currency}, plan ${found.plan}). Load it with \`sds sync ${domain}\`.`);
    });

  shop
    .command("disconnect <domain>")
    .description("forget the tokens of a shop; its mirror stays")
    .addHelpText("after", example("sds shop disconnect alpha.myshopify.com"))
    .action(async (domain: string, _options: object, command: Command) => {
      const gone = await withStore(command, async (store) => store.connections.disconnect((await findShop(store, domain)).id, Number.MAX_SAFE_INTEGER));
      if (!gone) throw new SdsError("not_found", `${domain} is not connected`);
      tell(`Disconnected ${domain}.`);
    });
}

/** The platform's side for a command. */
export function platformOf(config: Config, store: Store): Platform {
  const world = { ...dependencies(config), log: createLog(config.logLevel === "info" ? "warn" : config.logLevel, process.stderr, Date.now) };
  return openPlatform(config, store, new RecordWriter(store.mirror, Date.now), world);
}

async function readCredentials({ clientCredentials = false, tokenStdin = false, refreshTokenStdin = false }: Options): Promise<Credentials> {
  if (Number(clientCredentials) + Number(tokenStdin) + Number(refreshTokenStdin) !== 1) {
    throw new SdsError("invalid", "say how to connect: one of --client-credentials, --token-stdin and --refresh-token-stdin");
  }
  if (clientCredentials) return { kind: "client_credentials" };
  return tokenStdin ? { kind: "token", token: await readSecret("token") } : { kind: "refresh", refreshToken: await readSecret("refresh token") };
}
