import type { Command } from "commander";
import { clearEndpoint, rotateSigningSecret, saveEndpoint, signingSecret } from "../actions/endpoint.ts";
import { queueTestEvent } from "../actions/test-event.ts";
import { parseOverlap } from "../domain/deliveries/signing-secret.ts";
import { SdsError } from "../domain/error.ts";
import { TOPIC_NAMES, TOPICS } from "../domain/events/event.ts";
import { isoUtc } from "../lib/time.ts";
import type { WebhookSettings } from "../store/port/webhooks.ts";
import { confirm } from "./confirm.ts";
import { configOf, withShop } from "./context.ts";
import { resolveName } from "./dependencies.ts";
import { addNoun, example, onShop, SHOP_OPTION, splitList } from "./options.ts";
import { printFields, printJson, printLine, printSecret, tell, warn } from "./print.ts";

interface Options {
  json?: boolean;
}

interface SetOptions extends Options {
  url?: string;
  topics?: string;
  allTopics?: boolean;
}

interface RotateOptions extends Options {
  overlap?: string;
  yes?: boolean;
}

const TOPIC_HELP = `\nTopics:\n${TOPIC_NAMES.map((topic) => `  ${topic.padEnd(24)}${TOPICS[topic]}`).join("\n")}\n`;

export function addWebhookCommands(program: Command): void {
  const webhook = addNoun(
    program,
    "webhook",
    "set a shop's webhook endpoint, its topics and its signing secret",
    "sds webhook set --url https://hooks.example.com/sds --all-topics",
  );

  onShop(
    webhook
      .command("set")
      .description("set the endpoint's URL, its topics, or both")
      .option("--url <url>", "URL of the endpoint; it must begin with https://")
      .option("--topics <topics>", "topics to send, separated by commas; no others are sent")
      .option("--all-topics", "send all eight topics")
      .addHelpText("after", TOPIC_HELP),
    "sds webhook set --url https://hooks.example.com/sds --topics order.charged,order.failed",
  ).action(set);

  onShop(webhook.command("show").description("show the URL and the topics"), "sds webhook show").action(
    async (options: Options, command: Command) =>
      show(await withShop(command, (store, shop) => store.webhooks.settings(shop.id)), options),
  );

  webhook
    .command("clear")
    .description("remove the URL and all topics, so that no more webhooks are sent; the delivery log stays")
    .option(...SHOP_OPTION)
    .addHelpText("after", example("sds webhook clear"))
    .action(async (_options: object, command: Command) => {
      await withShop(command, clearEndpoint);
      tell("Webhooks are off.");
    });

  onShop(webhook.command("secret").description("print the signing secret"), "sds webhook secret").action(
    async (options: Options, command: Command) =>
      printSecret(await withShop(command, (store, shop) => signingSecret(store, shop, Date.now())), options),
  );

  onShop(
    webhook
      .command("rotate-secret")
      .description("make a new signing secret and print it")
      .option(
        "--overlap <duration>",
        "how long webhook-signature has a signature of the former secret too, from 1s to 30d (default: no overlap)",
      )
      .option("--yes", "do it without a question")
      .addHelpText(
        "after",
        "\nX-Service-Signature of deliveries that were queued before stays as it is.\n" +
          "With --json it does not print the secret: `sds webhook secret` does.",
      ),
    "sds webhook rotate-secret --overlap 24h --yes",
  ).action(rotateSecret);

  onShop(
    webhook
      .command("test")
      .description(
        "send a sample event to the endpoint, marked as a test in the delivery log, and print its delivery id",
      )
      .option(
        "--topic <topic>",
        "the event's topic; `sds webhook set --help` lists all topics",
        "subscription.created",
      ),
    "sds webhook test --topic order.failed",
  ).action(sendTest);
}

async function set({ url, topics: list, allTopics = false, ...options }: SetOptions, command: Command): Promise<void> {
  if (list !== undefined && allTopics) throw new SdsError("invalid", "say either --topics or --all-topics");
  const topics = allTopics ? TOPIC_NAMES : list === undefined ? undefined : splitList(list);
  if (url === undefined && topics === undefined)
    throw new SdsError("invalid", "say what to set: --url, --topics or --all-topics");
  const change = { ...(url !== undefined && { url }), ...(topics !== undefined && { topics }) };
  const allow = configOf(command).egressAllow;
  const { settings, warnings } = await withShop(command, (store, shop) =>
    saveEndpoint({ store, resolve: resolveName, allow }, { shop, change, actor: "operator" }, Date.now()),
  );
  show(settings, options);
  warn(warnings);
  if (settings.url === null) tell("Nothing is sent yet: set a URL with `sds webhook set --url ...`.");
  else if (settings.topics.length === 0)
    tell("Nothing is sent yet: choose topics with `sds webhook set --all-topics` or --topics.");
}

async function rotateSecret({ overlap, yes = false, json = false }: RotateOptions, command: Command): Promise<void> {
  const overlapMs = overlap === undefined ? 0 : parseOverlap(overlap);
  if (!yes) {
    const domain = await withShop(command, async (_store, shop) => shop.domain);
    // Nothing is open meanwhile: an answer can take hours, and nobody could restore a backup.
    await confirm(`this makes a new signing secret for ${domain}, and its receivers need it`, yes);
  }
  const rotatedAt = Date.now();
  const secret = await withShop(command, (store, shop) => rotateSigningSecret(store, { shop, overlapMs }, rotatedAt));
  if (json) printJson({ rotatedAt: isoUtc(rotatedAt) });
  else printSecret(secret, {});
  if (overlapMs > 0)
    tell(`Until ${isoUtc(rotatedAt + overlapMs)}, webhook-signature has a signature of the former secret too.`);
}

async function sendTest({ topic, json }: Options & { topic: string }, command: Command): Promise<void> {
  const id = await withShop(command, (store, shop) => queueTestEvent(store, { shop, topic: topic.trim() }, Date.now()));
  if (json) return printJson({ id });
  printLine(id);
  tell(
    `The test event is queued. A running \`sds serve\` sends it now. See the result with \`sds delivery show ${id}\`.`,
  );
}

function show(settings: WebhookSettings, { json = false }: Options): void {
  if (json) printJson(settings);
  else printFields({ url: settings.url ?? "none", topics: settings.topics.join(", ") || "none" });
}
