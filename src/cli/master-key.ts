import type { Command } from "commander";
import { auditEntry } from "../domain/audit.ts";
import { counted } from "../lib/text.ts";
import { isoUtc } from "../lib/time.ts";
import {
  type KeyChange,
  type LostSecrets,
  masterKeyLoss,
  resetMasterKey,
  rotateMasterKey,
} from "../store/master-key-change.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, operator } from "./context.ts";
import { randomBytes, sleep } from "./dependencies.ts";
import { printJson, tell } from "./print.ts";
import { confirm } from "./stdin.ts";

type KeyChangeFlags = JsonFlag & { yes?: boolean };

export function addCommands(program: SdsCommand): void {
  const masterKey = program
    .command("master-key")
    .description("change the key that stored secrets are encrypted with, or make a new one if it is lost")
    .examples("sds master-key rotate --yes");

  masterKey
    .command("rotate")
    .description("encrypt all stored secrets with a new master key; `sds serve` must not run")
    .option("--yes", "do it without a question")
    .jsonOption()
    .examples("sds master-key rotate --yes")
    .action(rotate);

  masterKey
    .command("reset")
    .description(
      "for a master key that is lost for good: make a new one, and new secrets. Shops have to be connected again; " +
        "the mirror, API keys and settings stay. `sds serve` must not run",
    )
    .option("--yes", "do it without a question")
    .jsonOption()
    .examples("sds master-key reset --yes")
    .action(reset);
}

async function rotate({ yes = false, json }: KeyChangeFlags, command: Command): Promise<void> {
  const change = keyChange(command);
  await confirm(`this changes the master key in ${change.masterKeyFile}, and backups before it need the old one`, yes);
  await rotateMasterKey(change);
  if (json) return printJson({ rotatedAt: isoUtc(Date.now()) });
  tellNewKey(change);
  tell("Earlier backups need the former key: keep it with these backups.");
}

async function reset({ yes = false, json }: KeyChangeFlags, command: Command): Promise<void> {
  const change = keyChange(command);
  const lost = await masterKeyLoss(change);
  if (!json) for (const shop of lost) tell(`  ${shop.domain}: ${replacedText(shop)}`);
  await confirm(`this makes a new master key and new secrets for ${counted(lost.length, "shop", "shops")}`, yes);
  const replaced = await resetMasterKey(change, auditEntry(operator(), Date.now(), "secrets.replaced"));
  if (json) return printJson({ rotatedAt: isoUtc(Date.now()), shops: replaced });
  tellNewKey(change);
  if (replaced.length > 0) tell("To do now:");
  for (const shop of replaced) tell(`  ${shop.domain}: ${remedyText(shop)}`);
}

function tellNewKey({ masterKeyFile, isServer }: KeyChange & { isServer: boolean }): void {
  tell(`${masterKeyFile} is a new key. Keep a copy of it in another place.`);
  if (isServer) tell("Copy the file to every node before you start it.");
}

/** Says which secrets of a shop a reset replaces, and whether the shop loses its connection. */
function replacedText({ hasSigningSecret, isConnected }: LostSecrets): string {
  const parts = ["a new intake secret", ...(hasSigningSecret ? ["a new signing secret"] : [])];
  return `${parts.join(", ")}${isConnected ? "; its connection to the platform ends" : ""}`;
}

function remedyText({ domain, hasSigningSecret, isConnected }: LostSecrets): string {
  return [
    `\`sds intake secret --shop ${domain}\` for its billing system`,
    ...(hasSigningSecret ? [`\`sds webhook secret --shop ${domain}\` for its receivers`] : []),
    ...(isConnected ? [`connect it again: \`sds shop connect ${domain}\`, or open the app in the shop`] : []),
  ].join("; ");
}

function keyChange(command: Command): KeyChange & { isServer: boolean } {
  const { data, database, masterKeyFile } = configOf(command);
  const location = database === null ? { folder: data } : database;
  return { location, masterKeyFile, random: randomBytes, now: Date.now, sleep, isServer: database !== null };
}
