import type { Command } from "commander";
import { findDelivery, retryDeadDeliveries, retryDelivery, retryResultText } from "../actions/delivery.ts";
import { type DecisionCode, type DeliveryDecision, explainDeliveries } from "../actions/delivery-decisions.ts";
import { findSubjects } from "../actions/delivery-search.ts";
import {
  DELIVERY_KINDS,
  DELIVERY_STATUSES,
  type DeliveryKind,
  type DeliveryStatus,
} from "../domain/deliveries/delivery.ts";
import { numberOf } from "../domain/deliveries/subject.ts";
import { invalid } from "../domain/error.ts";
import { escapeControls } from "../lib/log.ts";
import { counted } from "../lib/text.ts";
import { isoUtc, isoUtcOrNull, spanText } from "../lib/time.ts";
import type { Attempt, Delivery, DeliveryDetails } from "../store/port/deliveries.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, operator, withShop } from "./context.ts";
import { choiceOption, LIMIT_OPTION, parseSince, timeParser } from "./options.ts";
import { printFields, printJson, printLine, printList, printTable, tell } from "./print.ts";

type DeliveryListFlags = JsonFlag & {
  limit: number;
  status?: DeliveryStatus;
  kind?: DeliveryKind;
  topic?: string;
  from?: number;
  to?: number;
  subject?: string;
};
type DeliveryRetryFlags = JsonFlag & { dead?: boolean; since?: number; yes?: boolean };

const RETENTION = "Delivered ones are removed after 30 days (SDS_KEEP_DELIVERED), dead ones are kept.";

export function addCommands(program: SdsCommand): void {
  const delivery = program
    .command("delivery")
    .description(`show the delivery log, and send deliveries again. ${RETENTION}`)
    .examples("sds delivery list");

  delivery
    .command("list")
    .description(`list the last deliveries, newest first. ${RETENTION}`)
    .option(...LIMIT_OPTION)
    .option(...choiceOption("--status <status>", "list only deliveries with this status", DELIVERY_STATUSES))
    .option(...choiceOption("--kind <kind>", "list only deliveries of this kind", DELIVERY_KINDS))
    .option("--topic <topic>", "list only deliveries of this topic or workflow trigger")
    .option("--from <time>", "list only deliveries queued since then, as for retry --since", timeParser("--from"))
    .option("--to <time>", "list only deliveries queued before then", timeParser("--to"))
    .option("--subject <id>", "list only deliveries about this contract, order or customer: a gid, id or number")
    .shopAndJsonOptions()
    .examples("sds delivery list --status dead --limit 100", "sds delivery list --subject 5003 --from 7d")
    .action(list);

  delivery
    .command("show <id>")
    .description(`show one delivery with its body, its signature and every attempt. ${RETENTION}`)
    .shopAndJsonOptions()
    .examples("sds delivery show whd_abc")
    .action(show);

  delivery
    .command("why <id>")
    .description(
      "list what was sent about a contract, an order or a customer, and why the rest was not, oldest first. " +
        "Entries are removed with delivered ones (SDS_KEEP_DELIVERED)",
    )
    .shopAndJsonOptions()
    .examples("sds delivery why gid://shopify/SubscriptionContract/5003", "sds delivery why 5003")
    .action(why);

  delivery
    .command("retry [id]")
    .description("send one delivery again now, or with --dead all dead ones")
    .option("--dead", "all dead deliveries; without --yes, only count them")
    .option(
      "--since <time>",
      "with --dead: only deliveries queued since then, an ISO date in UTC or an age like 2h or 7d",
      parseSince,
    )
    .option("--yes", "with --dead: send them again")
    .shopAndJsonOptions()
    .examples("sds delivery retry whd_abc", "sds delivery retry --dead --since 24h --yes")
    .action(retry);
}

async function list({ json, subject, ...filter }: DeliveryListFlags, command: Command): Promise<void> {
  const deliveries = await withShop(command, async (store, shop) => {
    const subjects = subject === undefined ? undefined : await findSubjects(store.pages, shop, subject);
    return store.deliveries.list(shop.id, { ...filter, ...(subjects !== undefined && { subjects }) });
  });
  if (json) return printJson(deliveries.map(listEntry));
  const now = Date.now();
  printList(false, deliveries, "There are no such deliveries.", {
    ID: ({ id }) => id,
    AGE: ({ createdAt }) => spanText(now - createdAt),
    STATUS: ({ status }) => status,
    TOPIC: topicText,
    ABOUT: subjectText,
    ATTEMPTS: ({ attempts }) => String(attempts),
    HTTP: ({ lastStatusCode }) => String(lastStatusCode ?? ""),
    ERROR: ({ error }) => error ?? "",
  });
}

async function show(id: string, { json }: JsonFlag, command: Command): Promise<void> {
  const { delivery, signature } = await withShop(command, (store, shop) => findDelivery(store, shop, id), id);
  if (json)
    printJson({ ...listEntry(delivery), body: delivery.body, signature, history: delivery.history.map(attemptEntry) });
  else printDelivery(delivery, signature);
}

async function why(id: string, { json }: JsonFlag, command: Command): Promise<void> {
  const since = Date.now() - configOf(command).keepDeliveredMs;
  const decisions = await withShop(command, (store, shop) => explainDeliveries(store, shop, id, since));
  if (json) return printJson(decisions.map(({ at, ...rest }) => ({ at: isoUtcOrNull(at), ...rest })));
  // Prints lines instead of a table: a terminal would cut long sentences in a table.
  for (const each of decisions) printLine(escapeControls(decisionLine(each)));
}

function decisionLine({ at, topic, decision, delivery, error }: DeliveryDecision): string {
  const text = error === null ? DECISION_TEXTS[decision] : `${DECISION_TEXTS[decision]}: ${error}`;
  const about = topic === null ? text : `${topic}: ${text}`;
  return `${isoUtcOrNull(at) ?? "earlier".padEnd(24)}  ${about}${delivery === null ? "" : ` (${delivery})`}`;
}

/** Explains each decision to the operator. */
const DECISION_TEXTS: Record<DecisionCode, string> = {
  pending: "waits for its first attempt",
  retrying: "will be tried again",
  delivered: "delivered",
  dead: "dead",
  plan_without_access: "not sent: the shop's plan had no access",
  no_endpoint: "not sent: the shop had no endpoint",
  topic_not_chosen: "not sent: the shop had not chosen the topic",
  quiet: "not sent: it came with a quiet import, or happened before the shop was connected",
  no_topic: "it changed, but no topic tells of this change",
  redacted: "the customer's personal data was removed",
  pruned: "its last change is older than the stored entries (SDS_KEEP_DELIVERED)",
  nothing_changed: "its last change. Later records changed nothing, were older, or did not come",
};

async function retry(id: string | undefined, options: DeliveryRetryFlags, command: Command): Promise<void> {
  if ((id === undefined) !== (options.dead === true)) throw invalid("name one delivery by its id, or use --dead");
  if (id === undefined) return retryDead(options, command);
  if (options.since !== undefined || options.yes === true)
    throw invalid("--since and --yes can only be used with --dead");
  const { delivery, signature } = await withShop(
    command,
    (store, shop) => retryDelivery(store, { shop, actor: operator() }, id, Date.now()),
    id,
  );
  if (options.json) printJson({ ...listEntry(delivery), body: delivery.body, signature });
  else tell(`A running \`sds serve\` sends ${delivery.id} again now.`);
}

async function retryDead({ since = 0, yes = false, json }: DeliveryRetryFlags, command: Command): Promise<void> {
  const { dead, retried } = await withShop(command, async (store, shop) => ({
    dead: await store.deliveries.countDead(shop.id, since),
    retried: yes ? await retryDeadDeliveries(store, { shop, actor: operator() }, { since }, Date.now()) : 0,
  }));
  if (json) printJson({ dead, retried });
  else if (yes) tell(retryResultText(retried));
  else if (dead === 0) tell("There are no dead deliveries.");
  else if (dead === 1) tell("1 delivery is dead. Add --yes to send it again.");
  else tell(`${counted(dead, "delivery", "deliveries")} are dead. Add --yes to send them again.`);
}

/** Returns the fields of a delivery for the list. Only a test event has `test`. */
function listEntry(delivery: Delivery) {
  const { id, kind, topic, status, attempts, lastStatusCode, error, test } = delivery;
  const times = { createdAt: isoUtc(delivery.createdAt), nextAttemptAt: isoUtcOrNull(delivery.nextAttemptAt) };
  return { id, kind, topic, status, attempts, lastStatusCode, error, ...times, ...(test && { test }) };
}

function attemptEntry({ number, startedAt, duration, statusCode, error, url, answer }: Attempt) {
  return { number, startedAt: isoUtc(startedAt), duration, statusCode, error, url, answer };
}

/** Formats an endpoint's answer as one line: untrusted text must not look like other lines of the output. */
function answerLine({ answer }: Attempt): string {
  if (answer === null) return "none";
  return answer === "" ? "empty" : answer.replaceAll(/\s+/g, " ");
}

function topicText({ topic, test }: { topic: string; test?: boolean }): string {
  return test ? `${topic} (test)` : topic;
}

/** Names what a delivery is about: "order 8001", or the contract, or the customer. */
function subjectText({ subject: { contract, order, customer } }: Delivery): string {
  if (order !== null) return `order ${numberOf(order)}`;
  return contract === null ? (customer ?? "") : `contract ${numberOf(contract)}`;
}

/** Formats a body on several lines for people. The signature signs the one line that `--json` prints. */
function readableBody(body: string): string {
  return JSON.stringify(JSON.parse(body), null, 2);
}

function printDelivery(delivery: DeliveryDetails, signature: string | null): void {
  const { id, kind, status, attempts, createdAt, nextAttemptAt, lastStatusCode, error, body, history } = delivery;
  printFields({
    id,
    kind,
    topic: topicText(delivery),
    status,
    createdAt: isoUtc(createdAt),
    attempts: String(attempts),
    nextAttemptAt: isoUtcOrNull(nextAttemptAt) ?? "none",
    lastStatusCode: String(lastStatusCode ?? "none"),
    error: error ?? "none",
    signature: signature ?? "none",
  });
  printLine("");
  printLine(escapeControls(readableBody(body)));
  if (history.length === 0) return;
  printLine("");
  printFields(
    Object.fromEntries(
      history.flatMap((each) => [
        [`url ${each.number}`, each.url ?? "none"],
        [`answer ${each.number}`, answerLine(each)],
      ]),
    ),
  );
  printLine("");
  printTable(history, {
    ATTEMPT: ({ number }) => String(number),
    STARTED: ({ startedAt }) => isoUtc(startedAt),
    TOOK: ({ duration }) => `${duration} ms`,
    HTTP: ({ statusCode }) => String(statusCode ?? ""),
    ERROR: ({ error: text }) => text ?? "",
  });
}
