import type { Command } from "commander";
import { signatureOf } from "../delivery/deliverer.ts";
import { DELIVERY_KINDS, DELIVERY_STATUSES } from "../domain/delivery.ts";
import { SdsError } from "../domain/error.ts";
import { isoUtc } from "../lib/time.ts";
import type { Delivery, DeliveryDetails } from "../store/deliveries.ts";
import type { Store } from "../store/store.ts";
import { choose, chooseShop, DEFAULT_LIMIT, example, JSON_OPTION, MAX_LIMIT, parseLimit, parseSince, SHOP_OPTION, withStore } from "./context.ts";
import { printFields, printJson, printLine, printTable, tell } from "./print.ts";

interface Options {
  shop?: string;
  json?: boolean;
  limit?: string;
  status?: string;
  kind?: string;
  dead?: boolean;
  since?: string;
  yes?: boolean;
}

export function addDeliveryCommands(program: Command): void {
  const delivery = program.command("delivery").description("the log of what was sent, and sending it again").addHelpText("after", example("sds delivery list"));

  delivery
    .command("list")
    .description(`the last ${DEFAULT_LIMIT} deliveries, newest first`)
    .option("--limit <n>", `how many, up to ${MAX_LIMIT}`, String(DEFAULT_LIMIT))
    .option("--status <status>", `only ${DELIVERY_STATUSES.join(", ")}`)
    .option("--kind <kind>", `only ${DELIVERY_KINDS.join(" or ")}`)
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds delivery list --status dead --limit 100"))
    .action(async (options: Options, command: Command) => {
      const filter = {
        limit: parseLimit(options.limit ?? ""),
        ...(options.status !== undefined && { status: choose("--status", options.status, DELIVERY_STATUSES) }),
        ...(options.kind !== undefined && { kind: choose("--kind", options.kind, DELIVERY_KINDS) }),
      };
      const deliveries = await withStore(command, async (store) => store.deliveries.list((await chooseShop(store, options.shop)).id, filter));
      if (options.json) return printJson(deliveries.map(listed));
      if (deliveries.length === 0) return tell("Nothing to show.");
      printTable(
        ["ID", "KIND", "TOPIC", "STATUS", "ATTEMPTS", "HTTP", "CREATED", "ERROR"],
        deliveries.map((each) => [
          each.id,
          each.kind,
          each.test ? `${each.topic} (test)` : each.topic,
          each.status,
          String(each.attempts),
          String(each.lastStatusCode ?? ""),
          isoUtc(each.createdAt),
          each.error ?? "",
        ]),
      );
    });

  delivery
    .command("show <id>")
    .description("one delivery: its body, signature and every attempt")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds delivery show whd_abc"))
    .action(async (id: string, options: Options, command: Command) => {
      const { found, signature } = await withStore(command, async (store) => {
        const shop = await chooseShop(store, options.shop);
        return withSignature(store, shop.id, await store.deliveries.show(shop.id, id));
      });
      if (options.json) printJson({ ...listed(found), body: found.body, signature, history: found.history.map(attempted) });
      else show(found, signature);
    });

  delivery
    .command("retry [id]")
    .description("send a delivery again now, or with --dead all dead ones")
    .option("--dead", "all dead deliveries; says how many, and does it with --yes")
    .option("--since <time>", "only those queued since then: an ISO date in UTC, or an age like 2h or 7d")
    .option("--yes", "really retry them")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds delivery retry whd_abc", "sds delivery retry --dead --since 24h --yes"))
    .action(async (id: string | undefined, options: Options, command: Command) => {
      if ((id === undefined) !== (options.dead === true)) throw new SdsError("invalid", "name one delivery, or say --dead");
      if (id !== undefined && (options.since !== undefined || options.yes === true)) throw new SdsError("invalid", "--since and --yes go with --dead");
      if (id === undefined) return retryDead(options, command);
      const { found, signature } = await withStore(command, async (store) => {
        const shop = await chooseShop(store, options.shop);
        await store.deliveries.retry(shop.id, id, Date.now());
        return withSignature(store, shop.id, await store.deliveries.show(shop.id, id));
      });
      if (options.json) printJson({ ...listed(found), body: found.body, signature });
      else tell(`${found.id} is sent again now, by a running \`sds serve\`.`);
    });
}

async function retryDead(options: Options, command: Command): Promise<void> {
  const since = options.since === undefined ? 0 : parseSince(options.since);
  const counts = await withStore(command, async (store) => {
    const { id } = await chooseShop(store, options.shop);
    const dead = await store.deliveries.countDead(id, since);
    return { dead, retried: options.yes === true ? await store.deliveries.retryDead(id, since, Date.now()) : 0 };
  });
  if (options.json) printJson(counts);
  else if (options.yes === true) tell(`${counts.retried} dead deliveries are sent again.`);
  else tell(`${counts.dead} deliveries are dead. Say --yes to send them again.`);
}

async function withSignature(store: Store, shopId: number, found: DeliveryDetails): Promise<{ found: DeliveryDetails; signature: string | null }> {
  return { found, signature: await signatureOf(store.webhooks, shopId, found) };
}

function dateOrNull(ms: number | null): string | null {
  return ms === null ? null : isoUtc(ms);
}

/** `test` is there for tests alone. */
function listed({ id, kind, topic, status, attempts, lastStatusCode, error, createdAt, nextAttemptAt, test }: Delivery) {
  const entry = { id, kind, topic, status, attempts, lastStatusCode, error, createdAt: isoUtc(createdAt), nextAttemptAt: dateOrNull(nextAttemptAt) };
  return test ? { ...entry, test } : entry;
}

function attempted({ number, startedAt, duration, statusCode, error }: DeliveryDetails["history"][number]) {
  return { number, startedAt: isoUtc(startedAt), duration, statusCode, error };
}

function show(found: DeliveryDetails, signature: string | null): void {
  const { body, history } = found;
  const { error, lastStatusCode, nextAttemptAt, attempts, test, ...entry } = { test: false, ...listed(found) };
  const fields = { ...entry, topic: test ? `${entry.topic} (test)` : entry.topic, attempts: String(attempts), nextAttemptAt: nextAttemptAt ?? "none" };
  printFields({ ...fields, lastStatusCode: String(lastStatusCode ?? "none"), error: error ?? "none", signature: signature ?? "none", body });
  if (history.length === 0) return;
  printLine("");
  printTable(
    ["ATTEMPT", "STARTED", "TOOK", "HTTP", "ERROR"],
    history.map((each) => [String(each.number), isoUtc(each.startedAt), `${each.duration} ms`, String(each.statusCode ?? ""), each.error ?? ""]),
  );
}
