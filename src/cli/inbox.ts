import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { counted } from "../lib/text.ts";
import { isoUtc } from "../lib/time.ts";
import { INBOX_STATUSES, type InboxEntry } from "../store/port/inbox.ts";
import { withShop } from "./context.ts";
import { addNoun, LIMIT_OPTION, onShop, parseChoice, parseLimit } from "./options.ts";
import { printJson, printTable, tell } from "./print.ts";

interface Options {
  json?: boolean;
}

interface ListOptions extends Options {
  limit?: string;
  status?: string;
}

export function addInboxCommands(program: Command): void {
  const inbox = addNoun(
    program,
    "inbox",
    "list platform webhooks that wait to be processed or could not be processed, and process them again",
    "sds inbox list --status failed",
  );

  onShop(
    inbox
      .command("list")
      .description("list the platform webhooks in the inbox, newest first")
      .option(...LIMIT_OPTION)
      .option("--status <status>", `list only platform webhooks with this status: ${INBOX_STATUSES.join(", ")}`),
    "sds inbox list --status failed",
  ).action(list);

  onShop(
    inbox
      .command("retry [id]")
      .description("process a platform webhook again now, or with --failed all that could not be processed")
      .option("--failed", "all that could not be processed"),
    "sds inbox retry 12",
    "sds inbox retry --failed",
  ).action(retry);
}

async function list({ limit, status, json }: ListOptions, command: Command): Promise<void> {
  const filter = {
    limit: parseLimit(limit),
    ...(status !== undefined && { status: parseChoice("--status", status, INBOX_STATUSES) }),
  };
  const entries = (await withShop(command, (store, shop) => store.inbox.list(shop.id, filter))).map(listEntry);
  if (json) return printJson(entries);
  if (entries.length === 0) return tell(`There are no ${status ?? "waiting or failed"} platform webhooks.`);
  printTable(
    ["ID", "TOPIC", "ABOUT", "STATUS", "ATTEMPTS", "RECEIVED", "ERROR"],
    entries.map(({ id, topic, subject, status, attempts, receivedAt, error }) => [
      id,
      topic,
      subject,
      status,
      String(attempts),
      receivedAt,
      error ?? "",
    ]),
  );
}

async function retry(
  id: string | undefined,
  { failed = false, json }: Options & { failed?: boolean },
  command: Command,
): Promise<void> {
  if ((id === undefined) !== failed)
    throw new SdsError("invalid", "name one platform webhook by its id, or use --failed");
  if (id !== undefined && !/^\d{1,15}$/.test(id))
    throw new SdsError("not_found", `there is nothing with the id ${id} in the inbox`);
  const retried = await withShop(command, async (store, shop) => {
    if (id === undefined) return store.inbox.retryFailed(shop.id, Date.now());
    await store.inbox.retry(shop.id, Number(id), Date.now());
    return 1;
  });
  if (json) printJson({ retried });
  else if (retried === 0) tell("There are no failed platform webhooks.");
  else
    tell(`A running \`sds serve\` processes ${counted(retried, "platform webhook", "platform webhooks")} again now.`);
}

function listEntry({ number, topic, subject, status, attempts, error, receivedAt, nextAttemptAt }: InboxEntry) {
  const times = {
    receivedAt: isoUtc(receivedAt),
    nextAttemptAt: nextAttemptAt === null ? null : isoUtc(nextAttemptAt),
  };
  return { id: String(number), topic, subject, status, attempts, error, ...times };
}
