import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { type ApiKey, describeKey, generateKey, hashKey, isKey } from "../domain/key.ts";
import { isoUtc } from "../lib/time.ts";
import { chooseShop, example, JSON_OPTION, randomBytes, SHOP_OPTION, withStore } from "./context.ts";
import { printJson, printLine, printTable, tell } from "./print.ts";

interface Options {
  shop?: string;
  json?: boolean;
  label?: string;
}

export function addKeyCommands(program: Command): void {
  const key = program.command("key").description("create, list and revoke API keys").addHelpText("after", example("sds key create --label Warehouse"));

  key
    .command("create")
    .description("create an API key and print it, this once")
    .requiredOption("--label <text>", "what tells this key from the others")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds key create --label Warehouse"))
    .action(async (options: Options, command: Command) => {
      const plaintext = generateKey(randomBytes);
      const added = await store(command, options, plaintext, false);
      if (options.json) printJson({ id: added.id, key: plaintext, ...described(added) });
      else {
        printLine(plaintext);
        tell(`This is the key ${added.label}. Keep it now: only its hash is stored, and it is never shown again.`);
      }
    });

  key
    .command("import")
    .description("take over a key of an older system, read from stdin")
    .requiredOption("--label <text>", "what tells this key from the others")
    .requiredOption("--legacy", "marks it as one that was once stored in plain text, and should be rotated")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds key import --label 'Old CRM' --legacy < key.txt"))
    .action(async (options: Options, command: Command) => {
      const plaintext = (await Bun.stdin.text()).replace(/\r?\n$/, "");
      if (!isKey(plaintext)) throw new SdsError("invalid", "stdin holds no API key: it should be cad_pk_ and 48 lower-case hexadecimal digits");
      const added = await store(command, options, plaintext, true);
      if (options.json) printJson({ id: added.id, ...described(added) });
      else printLine(added.id);
    });

  key
    .command("list")
    .description("list the keys in force")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds key list"))
    .action(async (options: Options, command: Command) => {
      const keys = await withStore(command, async (store) => store.keys.list((await chooseShop(store, options.shop)).id));
      if (options.json) return printJson(keys.map(listed));
      if (keys.length === 0) return tell("There is no key yet. Create one with `sds key create --label Warehouse`.");
      printTable(
        ["ID", "LABEL", "FINGERPRINT", "CREATED", "LAST USED", ""],
        keys.map(listed).map((key) => [key.id, key.label, key.fingerprint, key.createdAt, key.lastUsedAt ?? "never", key.legacy ? "Legacy-rotate" : ""]),
      );
    });

  key
    .command("revoke <id>")
    .description("revoke a key by its id or fingerprint; the next request with it is refused")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds key revoke cad_pk_1a2b3c4d"))
    .action(async (id: string, options: Options, command: Command) => {
      const revoked = await withStore(command, async (store) => store.keys.revoke((await chooseShop(store, options.shop)).id, id, Date.now()));
      const shown = { id: revoked.id, revokedAt: isoUtc(revoked.revokedAt) };
      if (options.json) printJson(shown);
      else tell(`Revoked ${shown.id}.`);
    });
}

async function store(command: Command, options: Options, plaintext: string, legacy: boolean): Promise<ApiKey> {
  const added = describeKey(plaintext, options.label ?? "", legacy, randomBytes, Date.now());
  await withStore(command, async (store) => store.keys.add((await chooseShop(store, options.shop)).id, added, hashKey(plaintext)));
  return added;
}

function described({ label, fingerprint, createdAt }: ApiKey) {
  return { label, fingerprint, createdAt: isoUtc(createdAt) };
}

function listed(key: ApiKey) {
  const lastUsedAt = key.lastUsedAt === null ? null : isoUtc(key.lastUsedAt);
  return { id: key.id, ...described(key), lastUsedAt, legacy: key.legacy };
}
