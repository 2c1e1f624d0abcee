import type { Command } from "commander";
import { createKey, importLegacyKey, parseKey, revokeKey } from "../actions/key.ts";
import { messageOf, SdsError } from "../domain/error.ts";
import { type ApiKey, parseLabel } from "../domain/key.ts";
import { isoUtc } from "../lib/time.ts";
import { withShop } from "./context.ts";
import { randomBytes } from "./dependencies.ts";
import { addNoun, onShop } from "./options.ts";
import { printJson, printLine, printOnce, printTable, tell, warn } from "./print.ts";

interface Options {
  json?: boolean;
}

interface LabelOptions extends Options {
  label: string;
}

const LABEL_OPTION = ["--label <text>", "a name for this key, for instance the system that uses it"] as const;

export function addKeyCommands(program: Command): void {
  const key = addNoun(program, "key", "create, import, list and revoke API keys", "sds key create --label Warehouse");

  onShop(
    key
      .command("create")
      .description("create an API key and print it; it cannot be shown again")
      .requiredOption(...LABEL_OPTION),
    "sds key create --label Warehouse",
  ).action(create);

  onShop(
    key
      .command("import")
      .description("store a key of an older system, read from stdin, so that it works here too")
      .requiredOption(...LABEL_OPTION)
      .requiredOption("--legacy", "mark the key as one that was stored in plain text and should be replaced"),
    "sds key import --label 'Old CRM' --legacy < key.txt",
  ).action(importLegacy);

  onShop(key.command("list").description("list the keys that are not revoked"), "sds key list").action(list);

  onShop(
    key
      .command("revoke <id>")
      .description("revoke a key by its id or fingerprint; the next request with it is refused"),
    "sds key revoke cad_pk_1a2b3c4d",
  ).action(revoke);
}

async function create(options: LabelOptions, command: Command): Promise<void> {
  const label = parseLabel(options.label);
  const { entry, warnings } = await withShop(command, async (store, shop) => {
    const created = await createKey({ store, random: randomBytes }, { shop, label, actor: "operator" }, Date.now());
    const { entry, plaintext } = created;
    const shown = options.json ? JSON.stringify({ id: entry.id, key: plaintext, ...keyFields(entry) }) : plaintext;
    try {
      await printOnce(shown);
    } catch (thrown) {
      await revokeKey(store, shop, entry.id, Date.now());
      throw new SdsError("failed", `${messageOf(thrown)}; the key was revoked, because nobody has seen it`);
    }
    return created;
  });
  if (!options.json)
    tell(`This is the key ${entry.label}. Save it now: only its hash is stored here, so it cannot be shown again.`);
  warn(warnings);
}

async function importLegacy(options: LabelOptions, command: Command): Promise<void> {
  const plaintext = parseKey((await Bun.stdin.text()).replace(/\r?\n$/, ""));
  const label = parseLabel(options.label);
  const { entry, warnings } = await withShop(command, (store, shop) =>
    importLegacyKey({ store, random: randomBytes }, { shop, label, plaintext, actor: "operator" }, Date.now()),
  );
  if (options.json) printJson({ id: entry.id, ...keyFields(entry) });
  else printLine(entry.id);
  warn(warnings);
}

async function list(options: Options, command: Command): Promise<void> {
  const keys = (await withShop(command, (store, shop) => store.keys.list(shop.id))).map(listEntry);
  if (options.json) return printJson(keys);
  if (keys.length === 0) return tell("There is no key yet. Create one with `sds key create --label Warehouse`.");
  printTable(
    ["ID", "LABEL", "FINGERPRINT", "CREATED", "LAST USED", ""],
    keys.map((key) => [
      key.id,
      key.label,
      key.fingerprint,
      key.createdAt,
      key.lastUsedAt ?? "never",
      key.legacy ? "Legacy-rotate" : "",
    ]),
  );
}

async function revoke(which: string, options: Options, command: Command): Promise<void> {
  const { entry, revokedAt } = await withShop(command, (store, shop) => revokeKey(store, shop, which, Date.now()));
  if (options.json) printJson({ id: entry.id, revokedAt: isoUtc(revokedAt) });
  else tell(`Revoked the key ${entry.label} (${entry.id}).`);
}

function keyFields({ label, fingerprint, createdAt }: ApiKey) {
  return { label, fingerprint, createdAt: isoUtc(createdAt) };
}

function listEntry(key: ApiKey) {
  const lastUsedAt = key.lastUsedAt === null ? null : isoUtc(key.lastUsedAt);
  return { id: key.id, ...keyFields(key), lastUsedAt, legacy: key.legacy };
}
