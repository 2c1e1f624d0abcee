import type { Command } from "commander";
import { SETTING_NAMES } from "../setting-names.ts";

const COLUMNS = 80;
const STORE = ["SDS_DATA", "SDS_DATABASE_URL", "SDS_DATABASE_URL_FILE", "SDS_MASTER_KEY_FILE"];
const PLATFORM = ["SDS_PLATFORM_CLIENT_ID", "SDS_PLATFORM_SECRET_FILE", "SDS_PLATFORM_URL"];
/** Settings of the client only. */
const OF_CLIENT = ["SDS_KEY_FILE", "SDS_SHOP"];
const OF_SERVICE = SETTING_NAMES.filter((name) => !OF_CLIENT.includes(name));

/** The settings of commands. A command that is not listed needs only the settings of the database. */
const SETTINGS: Record<string, readonly string[]> = {
  serve: OF_SERVICE,
  doctor: OF_SERVICE,
  "__find-damage": ["SDS_DATA"],
  "service print": OF_SERVICE,
  "platform jwk": [],
  demo: [],
  docs: [],
  man: [],
  version: [],
  completions: [],
  listen: [...STORE, "SDS_PORT"],
  pull: ["SDS_KEY_FILE"],
  backup: ["SDS_DATA", "SDS_MASTER_KEY_FILE"],
  restore: ["SDS_DATA", "SDS_MASTER_KEY_FILE"],
  "delivery why": [...STORE, "SDS_KEEP_DELIVERED"],
  sync: [...STORE, ...PLATFORM],
  status: [...STORE, "SDS_HOST", "SDS_PORT"],
  "shop connect": [...STORE, ...PLATFORM],
  "admin link": [...STORE, "SDS_HOST", "SDS_PORT", "SDS_PUBLIC_URL"],
  "webhook set": [...STORE, "SDS_EGRESS_ALLOW"],
  "platform files": ["SDS_PLATFORM_CLIENT_ID", "SDS_PUBLIC_URL"],
};

/** Adds the names of a command's settings to its help. Does the same for all its subcommands. */
export function addSettingsHelp(command: Command, path: readonly string[] = []): void {
  for (const each of command.commands) addSettingsHelp(each, [...path, each.name()]);
  const names = SETTINGS[path.join(" ")] ?? STORE;
  if (command.commands.length > 0 || names.length === 0) return;
  const shop = command.options.some(({ long }) => long === "--shop") ? ["SDS_SHOP"] : [];
  const text = `Settings, see \`sds docs operating\`: ${[...names, ...shop].join(", ")}.`;
  command.addHelpText("after", `\n${Bun.wrapAnsi(text, COLUMNS)}`);
}
