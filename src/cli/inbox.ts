import type { Command } from "commander";
import { retryFailedItems, retryItem } from "../actions/inbox.ts";
import { invalid, SdsError } from "../domain/error.ts";
import { counted } from "../lib/text.ts";
import { isoUtc, isoUtcOrNull } from "../lib/time.ts";
import { INBOX_STATUSES, type InboxEntry, type InboxStatus } from "../store/port/inbox.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { operator, withShop } from "./context.ts";
import { choiceOption, LIMIT_OPTION } from "./options.ts";
import { printJson, printList, tell } from "./print.ts";

export function addCommands(program: SdsCommand): void {
  const inbox = program
    .command("inbox")
    .description(
      "list platform webhooks, and objects of the platform, that wait or could not be processed; process them again",
    )
    .examples("sds inbox list --status failed");

  inbox
    .command("list")
    .description(
      "list the items in the inbox, newest first: platform webhooks, and objects that a load or a reconciliation left",
    )
    .option(...LIMIT_OPTION)
    .option(...choiceOption("--status <status>", "list only items with this status", INBOX_STATUSES))
    .shopAndJsonOptions()
    .examples("sds inbox list --status failed")
    .action(list);

  inbox
    .command("retry [id]")
    .description("process an item again now, or with --failed all items that could not be processed")
    .option("--failed", "all items that could not be processed")
    .shopAndJsonOptions()
    .examples("sds inbox retry 12", "sds inbox retry --failed")
    .action(retry);
}

type InboxListFlags = JsonFlag & { limit: number; status?: InboxStatus };

async function list({ json, ...filter }: InboxListFlags, command: Command): Promise<void> {
  const entries = await withShop(command, (store, shop) => store.inbox.list(shop.id, filter));
  const ifEmpty = `The inbox has no ${filter.status ?? "waiting or failed"} items.`;
  printList(json, entries.map(listEntry), ifEmpty, {
    ID: ({ id }) => id,
    TOPIC: ({ topic }) => topic,
    ABOUT: ({ subject }) => subject,
    STATUS: ({ status }) => status,
    ATTEMPTS: ({ attempts }) => String(attempts),
    RECEIVED: ({ receivedAt }) => receivedAt,
    ERROR: ({ error }) => error ?? "",
  });
}

async function retry(
  id: string | undefined,
  { failed = false, json }: JsonFlag & { failed?: boolean },
  command: Command,
): Promise<void> {
  if ((id === undefined) !== failed) throw invalid("name one item of the inbox by its id, or use --failed");
  if (id !== undefined && !/^\d{1,15}$/.test(id))
    throw new SdsError("not_found", `there is no item with the id ${id} in the inbox`);
  const retried = await withShop(command, async (store, shop) => {
    const by = { shop, actor: operator() };
    if (id === undefined) return retryFailedItems(store, by, Date.now());
    await retryItem(store, by, Number(id), Date.now());
    return 1;
  });
  if (json) return printJson({ retried });
  if (retried === 0) return tell("The inbox has no failed items.");
  tell(`A running \`sds serve\` processes ${counted(retried, "item", "items")} again now.`);
}

function listEntry({ number, topic, subject, status, attempts, error, receivedAt, nextAttemptAt }: InboxEntry) {
  const times = { receivedAt: isoUtc(receivedAt), nextAttemptAt: isoUtcOrNull(nextAttemptAt) };
  return { id: String(number), topic, subject, status, attempts, error, ...times };
}
