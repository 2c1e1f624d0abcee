import { Command, CommanderError } from "commander";
import { version } from "../../package.json";
import { type ErrorCode, messageOf, SdsError } from "../domain/error.ts";
import { addAdminCommands } from "./admin.ts";
import { addBackupCommand } from "./backup.ts";
import { addCopyCommand } from "./copy.ts";
import { addCustomerCommands } from "./customer.ts";
import { addDeliveryCommands } from "./delivery.ts";
import { addDemoCommand } from "./demo/demo-command.ts";
import { addDocsCommand } from "./docs.ts";
import { addImportCommand } from "./import.ts";
import { addInboxCommands } from "./inbox.ts";
import { addIntakeCommands } from "./intake.ts";
import { addKeyCommands } from "./key.ts";
import { addListenCommand } from "./listen.ts";
import { example } from "./options.ts";
import { addPlatformCommands } from "./platform.ts";
import { tell } from "./print.ts";
import { addPullCommand } from "./pull/pull-command.ts";
import { addRestoreCommand } from "./restore.ts";
import { addServeCommand } from "./serve.ts";
import { addShopCommands } from "./shop.ts";
import { addStatusCommand } from "./status.ts";
import { addSyncCommand } from "./sync.ts";
import { addVersionCommand } from "./version.ts";
import { addWebhookCommands } from "./webhook.ts";

/** Exit statuses: 2 for wrong usage or bad input, 3 for what does not exist. Every other error is 1. */
const EXIT: Partial<Record<ErrorCode, number>> = { invalid: 2, bad_record: 2, not_found: 3 };

/** Runs a command line. An error is one line on stderr. @returns the exit status */
export async function run(argv: readonly string[]): Promise<number> {
  try {
    await buildProgram().parseAsync(argv, { from: "user" });
    return 0;
  } catch (thrown) {
    // commander has printed its own error or the help.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    tell(`sds: ${messageOf(thrown).replaceAll(/\s*\n\s*/g, " ")}`);
    return thrown instanceof SdsError ? (EXIT[thrown.code] ?? 1) : 1;
  }
}

function buildProgram(): Command {
  const program = new Command("sds")
    .description(
      "Subscription Data Service: a read-only API, signed webhooks and workflow triggers " +
        "over a local mirror of a shop's customers, subscriptions and orders.",
    )
    .version(version, "--version", "print the version")
    .option("--data <dir>", "folder of the database and the master key (env SDS_DATA, default ./data)")
    .addHelpText(
      "after",
      example("sds demo", "sds shop add alpha.myshopify.com", "sds key create --label Warehouse", "sds serve"),
    )
    .exitOverride()
    .configureOutput({ outputError: (text) => tell(oneLine(text)) });
  addServeCommand(program);
  addDemoCommand(program);
  addShopCommands(program);
  addSyncCommand(program);
  addKeyCommands(program);
  addAdminCommands(program);
  addImportCommand(program);
  addIntakeCommands(program);
  addWebhookCommands(program);
  addDeliveryCommands(program);
  addListenCommand(program);
  addInboxCommands(program);
  addCustomerCommands(program);
  addPlatformCommands(program);
  addBackupCommand(program);
  addRestoreCommand(program);
  addCopyCommand(program);
  addPullCommand(program);
  addStatusCommand(program);
  addDocsCommand(program);
  addVersionCommand(program);
  return program;
}

/** commander begins with `error:` and puts its suggestion on a second line. */
function oneLine(text: string): string {
  return `sds: ${text
    .replace(/^error: /, "")
    .trim()
    .replaceAll(/\s*\n\s*/g, " ")}`;
}
