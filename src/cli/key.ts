import type { Command } from "commander";
import { createKey, revokeKey } from "../actions/key.ts";
import { messageOf, SdsError } from "../domain/error.ts";
import { type ApiKey, parseKey, parseLabel } from "../domain/key.ts";
import { isoUtc, isoUtcOrNull } from "../lib/time.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { operator, withShop } from "./context.ts";
import { randomBytes } from "./dependencies.ts";
import { printJson, printLine, printList, tell, warn, writeOut } from "./print.ts";

const LABEL_OPTION = [
  "--label <text>",
  "a name for this key, for instance the system that uses it",
  parseLabel,
] as const;

type KeyFlags = JsonFlag & { label: string };

export function addCommands(program: SdsCommand): void {
  const key = program
    .command("key")
    .description("create, import, list and revoke API keys")
    .examples("sds key create --label Warehouse");

  key
    .command("create")
    .description("create an API key and print it; it cannot be shown again")
    .requiredOption(...LABEL_OPTION)
    .shopAndJsonOptions()
    .examples("sds key create --label Warehouse")
    .action(create);

  key
    .command("import")
    .description("store a key of an older system, read from stdin, so that it works here too")
    .requiredOption(...LABEL_OPTION)
    .requiredOption("--legacy", "mark the key as one that was stored in plain text and should be replaced")
    .shopAndJsonOptions()
    .examples("sds key import --label 'Old CRM' --legacy < key.txt")
    .action(importLegacy);

  key
    .command("list")
    .description("list the keys that are not revoked")
    .shopAndJsonOptions()
    .examples("sds key list")
    .action(list);

  key
    .command("revoke <id>")
    .description("revoke a key by its id or fingerprint; the next request with it is refused")
    .shopAndJsonOptions()
    .examples("sds key revoke cad_pk_1a2b3c4d")
    .action(async (which: string, { json }: JsonFlag, command: Command) => {
      const revoked = await withShop(
        command,
        (store, shop) => revokeKey(store, { shop, actor: operator() }, which, Date.now()),
        which,
      );
      if (json) printJson({ id: revoked.id, revokedAt: isoUtc(revoked.revokedAt) });
      else tell(`Revoked the key ${revoked.label} (${revoked.id}).`);
    });
}

async function create({ label, json }: KeyFlags, command: Command): Promise<void> {
  const { entry, warnings } = await withShop(command, async (store, shop) => {
    const created = await createKey({ store, random: randomBytes }, { shop, label, actor: operator() }, Date.now());
    const { entry, plaintext } = created;
    try {
      // `printLine` would return before the key is written. If the write fails, the key must be revoked.
      await writeOut(`${json ? JSON.stringify({ id: entry.id, key: plaintext, ...keyFields(entry) }) : plaintext}\n`);
    } catch (thrown) {
      await revokeKey(store, { shop, actor: operator() }, entry.id, Date.now());
      throw new SdsError("failed", `${messageOf(thrown)}; the key was revoked, because nobody has seen it`);
    }
    return created;
  });
  if (!json)
    tell(`This is the key ${entry.label}. Save it now: only its hash is stored here, so it cannot be shown again.`);
  warn(warnings);
}

async function importLegacy({ label, json }: KeyFlags, command: Command): Promise<void> {
  const legacyKey = parseKey((await Bun.stdin.text()).replace(/\r?\n$/, ""));
  const { entry, warnings } = await withShop(command, (store, shop) =>
    createKey({ store, random: randomBytes }, { shop, label, legacyKey, actor: operator() }, Date.now()),
  );
  if (json) printJson({ id: entry.id, ...keyFields(entry) });
  else printLine(entry.id);
  warn(warnings);
}

async function list({ json }: JsonFlag, command: Command): Promise<void> {
  const keys = await withShop(command, (store, shop) => store.keys.list(shop.id));
  printList(json, keys.map(listEntry), "There is no key yet. Create one with `sds key create --label Warehouse`.", {
    ID: ({ id }) => id,
    LABEL: ({ label }) => label,
    FINGERPRINT: ({ fingerprint }) => fingerprint,
    CREATED: ({ createdAt }) => createdAt,
    "MADE BY": ({ createdBy }) => createdBy ?? "",
    "LAST USED": ({ lastUsedAt }) => lastUsedAt ?? "never",
    "": ({ legacy }) => (legacy ? "Legacy-rotate" : ""),
  });
}

function keyFields({ label, fingerprint, createdAt }: ApiKey) {
  return { label, fingerprint, createdAt: isoUtc(createdAt) };
}

function listEntry(key: ApiKey) {
  return {
    id: key.id,
    ...keyFields(key),
    lastUsedAt: isoUtcOrNull(key.lastUsedAt),
    legacy: key.legacy,
    createdBy: key.createdBy,
  };
}
