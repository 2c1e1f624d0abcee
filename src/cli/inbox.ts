import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { isoUtc } from "../lib/time.ts";
import { INBOX_STATUSES, type InboxEntry } from "../store/inbox.ts";
import { choose, chooseShop, DEFAULT_LIMIT, example, JSON_OPTION, MAX_LIMIT, parseLimit, SHOP_OPTION, withStore } from "./context.ts";
import { printJson, printTable, tell } from "./print.ts";

interface Options {
  shop?: string;
  json?: boolean;
  limit?: string;
  status?: string;
  failed?: boolean;
}

export function addInboxCommands(program: Command): void {
  const inbox = program
    .command("inbox")
    .description("webhooks of the platform that wait to be processed, or could not be")
    .addHelpText("after", example("sds inbox list --status failed"));

  inbox
    .command("list")
    .description("what is in the inbox, newest first")
    .option("--limit <n>", `how many, up to ${MAX_LIMIT}`, String(DEFAULT_LIMIT))
    .option("--status <status>", `only ${INBOX_STATUSES.join(" or ")}`)
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds inbox list --status failed"))
    .action(async (options: Options, command: Command) => {
      const filter = {
        limit: parseLimit(options.limit ?? ""),
        ...(options.status !== undefined && { status: choose("--status", options.status, INBOX_STATUSES) }),
      };
      const entries = (await withStore(command, async (store) => store.inbox.list((await chooseShop(store, options.shop)).id, filter))).map(listed);
      if (options.json) return printJson(entries);
      if (entries.length === 0) return tell("Nothing waits.");
      printTable(
        ["ID", "TOPIC", "ABOUT", "STATUS", "ATTEMPTS", "RECEIVED", "ERROR"],
        entries.map(({ id, topic, subject, status, attempts, receivedAt, error }) => [id, topic, subject, status, String(attempts), receivedAt, error ?? ""]),
      );
    });

  inbox
    .command("retry [id]")
    .description("process one again now, or with --failed all that failed")
    .option("--failed", "all that failed")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds inbox retry 12", "sds inbox retry --failed"))
    .action(async (id: string | undefined, options: Options, command: Command) => {
      if ((id === undefined) !== (options.failed === true)) throw new SdsError("invalid", "name one, or say --failed");
      if (id !== undefined && !/^\d{1,15}$/.test(id)) throw new SdsError("not_found", `there is nothing with the id ${id} in the inbox`);
      const retried = await withStore(command, async (store) => {
        const shop = await chooseShop(store, options.shop);
        if (id === undefined) return store.inbox.retryFailed(shop.id, Date.now());
        await store.inbox.retry(shop.id, Number(id), Date.now());
        return 1;
      });
      if (options.json) printJson({ retried });
      else tell(`${retried} processed again now, by a running \`sds serve\`.`);
    });
}

function listed({ number, topic, subject, status, attempts, error, receivedAt, nextAttemptAt }: InboxEntry) {
  const times = { receivedAt: isoUtc(receivedAt), nextAttemptAt: nextAttemptAt === null ? null : isoUtc(nextAttemptAt) };
  return { id: String(number), topic, subject, status, attempts, error, ...times };
}
