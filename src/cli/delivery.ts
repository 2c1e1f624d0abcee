import type { Command } from "commander";
import {
  countDeadDeliveries,
  countedDeliveries,
  findDelivery,
  retryDeadDeliveries,
  retryDelivery,
  retryResultText,
} from "../actions/delivery.ts";
import { DELIVERY_KINDS, DELIVERY_STATUSES, RETENTION_TEXT } from "../domain/deliveries/delivery.ts";
import { SdsError } from "../domain/error.ts";
import { isoUtc } from "../lib/time.ts";
import type { Attempt, Delivery, DeliveryDetails } from "../store/port/deliveries.ts";
import { withShop } from "./context.ts";
import { addNoun, LIMIT_OPTION, onShop, parseChoice, parseLimit, parseSince } from "./options.ts";
import { printFields, printJson, printLine, printTable, tell } from "./print.ts";

interface Options {
  json?: boolean;
}

interface ListOptions extends Options {
  limit?: string;
  status?: string;
  kind?: string;
}

interface RetryOptions extends Options {
  dead?: boolean;
  since?: string;
  yes?: boolean;
}

export function addDeliveryCommands(program: Command): void {
  const delivery = addNoun(
    program,
    "delivery",
    `show the delivery log, and send deliveries again. ${RETENTION_TEXT}`,
    "sds delivery list",
  );

  onShop(
    delivery
      .command("list")
      .description(`list the last deliveries, newest first. ${RETENTION_TEXT}`)
      .option(...LIMIT_OPTION)
      .option("--status <status>", `list only deliveries with this status: ${DELIVERY_STATUSES.join(", ")}`)
      .option("--kind <kind>", `list only deliveries of this kind: ${DELIVERY_KINDS.join(", ")}`),
    "sds delivery list --status dead --limit 100",
  ).action(list);

  onShop(
    delivery
      .command("show <id>")
      .description(`show one delivery with its body, its signature and every attempt. ${RETENTION_TEXT}`),
    "sds delivery show whd_abc",
  ).action(show);

  onShop(
    delivery
      .command("retry [id]")
      .description("send one delivery again now, or with --dead all dead ones")
      .option("--dead", "all dead deliveries; without --yes, only count them")
      .option(
        "--since <time>",
        "with --dead: only deliveries queued since then, an ISO date in UTC or an age like 2h or 7d",
      )
      .option("--yes", "with --dead: send them again"),
    "sds delivery retry whd_abc",
    "sds delivery retry --dead --since 24h --yes",
  ).action(async (id: string | undefined, options: RetryOptions, command: Command) => {
    if ((id === undefined) !== (options.dead === true))
      throw new SdsError("invalid", "name one delivery by its id, or use --dead");
    if (id === undefined) return retryDead(options, command);
    if (options.since !== undefined || options.yes === true)
      throw new SdsError("invalid", "--since and --yes can only be used with --dead");
    await retryOne(id, options, command);
  });
}

async function list({ limit, status, kind, json }: ListOptions, command: Command): Promise<void> {
  const filter = {
    limit: parseLimit(limit),
    ...(status !== undefined && { status: parseChoice("--status", status, DELIVERY_STATUSES) }),
    ...(kind !== undefined && { kind: parseChoice("--kind", kind, DELIVERY_KINDS) }),
  };
  const deliveries = await withShop(command, (store, shop) => store.deliveries.list(shop.id, filter));
  if (json) return printJson(deliveries.map(listEntry));
  if (deliveries.length === 0) return tell("There are no such deliveries.");
  printTable(
    ["ID", "KIND", "TOPIC", "STATUS", "ATTEMPTS", "HTTP", "CREATED", "ERROR"],
    deliveries.map((each) => [
      each.id,
      each.kind,
      topicText(each),
      each.status,
      String(each.attempts),
      String(each.lastStatusCode ?? ""),
      isoUtc(each.createdAt),
      each.error ?? "",
    ]),
  );
}

async function show(id: string, { json }: Options, command: Command): Promise<void> {
  const { delivery, signature } = await withShop(command, (store, shop) => findDelivery(store, shop, id));
  if (json)
    printJson({ ...listEntry(delivery), body: delivery.body, signature, history: delivery.history.map(attemptEntry) });
  else printDelivery(delivery, signature);
}

async function retryOne(id: string, { json }: Options, command: Command): Promise<void> {
  const { delivery, signature } = await withShop(command, (store, shop) => retryDelivery(store, shop, id, Date.now()));
  if (json) printJson({ ...listEntry(delivery), body: delivery.body, signature });
  else tell(`A running \`sds serve\` sends ${delivery.id} again now.`);
}

async function retryDead({ since: text, yes = false, json }: RetryOptions, command: Command): Promise<void> {
  const since = text === undefined ? 0 : parseSince(text);
  const { dead, retried } = await withShop(command, async (store, shop) => ({
    dead: await countDeadDeliveries(store, shop, { since }),
    retried: yes ? await retryDeadDeliveries(store, shop, { since }, Date.now()) : 0,
  }));
  if (json) printJson({ dead, retried });
  else if (yes) tell(retryResultText(retried));
  else if (dead === 0) tell("There are no dead deliveries.");
  else
    tell(
      dead === 1
        ? "1 delivery is dead. Add --yes to send it again."
        : `${countedDeliveries(dead)} are dead. Add --yes to send them again.`,
    );
}

/** Has `test` only for a test event. */
function listEntry({
  id,
  kind,
  topic,
  status,
  attempts,
  lastStatusCode,
  error,
  createdAt,
  nextAttemptAt,
  test,
}: Delivery) {
  const times = { createdAt: isoUtc(createdAt), nextAttemptAt: nextAttemptAt === null ? null : isoUtc(nextAttemptAt) };
  return { id, kind, topic, status, attempts, lastStatusCode, error, ...times, ...(test && { test }) };
}

function attemptEntry({ number, startedAt, duration, statusCode, error, url, answer }: Attempt) {
  return { number, startedAt: isoUtc(startedAt), duration, statusCode, error, url, answer };
}

/** An answer on one line: it can be anything, and must not look like other lines of the output. */
function answerLine({ answer }: Attempt): string {
  if (answer === null) return "none";
  return answer === "" ? "empty" : answer.replaceAll(/\s+/g, " ");
}

function topicText({ topic, test }: Delivery): string {
  return test ? `${topic} (test)` : topic;
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
    nextAttemptAt: nextAttemptAt === null ? "none" : isoUtc(nextAttemptAt),
    lastStatusCode: String(lastStatusCode ?? "none"),
    error: error ?? "none",
    signature: signature ?? "none",
    body,
  });
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
  printTable(
    ["ATTEMPT", "STARTED", "TOOK", "HTTP", "ERROR"],
    history.map((each) => [
      String(each.number),
      isoUtc(each.startedAt),
      `${each.duration} ms`,
      String(each.statusCode ?? ""),
      each.error ?? "",
    ]),
  );
}
