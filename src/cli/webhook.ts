import type { Command } from "commander";
import { clearEndpoint, rotateSecret, saveEndpoint, showSecret } from "../actions/endpoint.ts";
import { queueTestEvent } from "../actions/test-event.ts";
import { parseOverlap } from "../domain/deliveries/delivery.ts";
import { invalid } from "../domain/error.ts";
import { TOPIC_NAMES, TOPICS } from "../domain/events/event.ts";
import { isoUtc } from "../lib/time.ts";
import type { WebhookSettings } from "../store/port/webhooks.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, operator, withShop } from "./context.ts";
import { resolveName } from "./dependencies.ts";
import { splitList } from "./options.ts";
import { printFields, printJson, printLine, printSecret, tell, warn } from "./print.ts";
import { confirm } from "./stdin.ts";

type EndpointFlags = JsonFlag & { url?: string; topics?: string[]; allTopics?: boolean };
type RotateFlags = JsonFlag & { overlap?: number; yes?: boolean };

const TOPIC_HELP = `\nTopics:\n${TOPIC_NAMES.map((topic) => `  ${topic.padEnd(24)}${TOPICS[topic]}`).join("\n")}`;

export function addCommands(program: SdsCommand): void {
  const webhook = program
    .command("webhook")
    .description("set a shop's webhook endpoint, its topics and its signing secret")
    .examples("sds webhook set --url https://hooks.example.com/sds --all-topics");

  webhook
    .command("set")
    .description("set the endpoint's URL, its topics, or both")
    .option("--url <url>", "URL of the endpoint; it must begin with https://")
    .option("--topics <topics>", "topics to send, separated by commas; no others are sent", splitList)
    .option("--all-topics", "send all eight topics")
    .shopAndJsonOptions()
    .addHelpText("after", TOPIC_HELP)
    .examples("sds webhook set --url https://hooks.example.com/sds --topics order.charged")
    .action(set);

  webhook
    .command("show")
    .description("show the URL and the topics")
    .shopAndJsonOptions()
    .examples("sds webhook show")
    .action(async ({ json }: JsonFlag, command: Command) =>
      show(await withShop(command, (store, shop) => store.webhooks.settings(shop.id)), json),
    );

  webhook
    .command("clear")
    .description("remove the URL and all topics, so that no more webhooks are sent; the delivery log stays")
    .shopAndJsonOptions()
    .examples("sds webhook clear")
    .action(async ({ json }: JsonFlag, command: Command) => {
      await withShop(command, (store, shop) => clearEndpoint(store, { shop, actor: operator() }, Date.now()));
      if (json) printJson({ url: null, topics: [] });
      else tell("Webhooks are off.");
    });

  addSecretCommands(webhook);

  webhook
    .command("test")
    .description("send a sample event to the endpoint, marked as a test in the delivery log, and print its delivery id")
    .option("--topic <topic>", "the event's topic; `sds webhook set --help` lists all topics", "subscription.created")
    .shopAndJsonOptions()
    .examples("sds webhook test --topic order.failed")
    .action(sendTest);
}

function addSecretCommands(webhook: SdsCommand): void {
  webhook
    .command("secret")
    .description("print the signing secret")
    .shopAndJsonOptions()
    .examples("sds webhook secret")
    .action(async ({ json }: JsonFlag, command: Command) =>
      printSecret(
        await withShop(command, (store, shop) => showSecret(store, { shop, actor: operator() }, Date.now())),
        json,
      ),
    );

  webhook
    .command("rotate-secret")
    .description("make a new signing secret and print it")
    .option(
      "--overlap <duration>",
      "how long webhook-signature has a signature of the former secret too, from 1s to 30d (default: no overlap)",
      parseOverlap,
    )
    .option("--yes", "do it without a question")
    .shopAndJsonOptions()
    .addHelpText(
      "after",
      "\nDeliveries that are already queued keep their X-Service-Signature.\n" +
        "With --json it does not print the secret: `sds webhook secret` does.",
    )
    .examples("sds webhook rotate-secret --overlap 24h --yes")
    .action(rotate);
}

async function set({ url, topics: chosen, allTopics = false, json }: EndpointFlags, command: Command): Promise<void> {
  if (chosen !== undefined && allTopics) throw invalid("say either --topics or --all-topics");
  const topics = allTopics ? TOPIC_NAMES : chosen;
  if (url === undefined && topics === undefined) throw invalid("say what to set: --url, --topics or --all-topics");
  const change = { ...(url !== undefined && { url }), ...(topics !== undefined && { topics }) };
  const allow = configOf(command).egressAllow;
  const { settings, warnings } = await withShop(command, (store, shop) =>
    saveEndpoint({ store, resolve: resolveName, allow }, { shop, change, actor: operator() }, Date.now()),
  );
  show(settings, json);
  warn(warnings);
  if (settings.url === null) tell("Nothing is sent yet: set a URL with `sds webhook set --url ...`.");
  else if (settings.topics.length === 0)
    tell("Nothing is sent yet: choose topics with `sds webhook set --all-topics` or --topics.");
}

async function rotate({ overlap = 0, yes = false, json }: RotateFlags, command: Command): Promise<void> {
  if (!yes) {
    const domain = await withShop(command, async (_store, shop) => shop.domain);
    // The store is closed during the confirmation prompt, which can take hours. An open store would block a restore.
    await confirm(`this makes a new signing secret for ${domain}, and its receivers need it`, yes);
  }
  const rotatedAt = Date.now();
  const secret = await withShop(command, (store, shop) =>
    rotateSecret(store, { shop, actor: operator() }, rotatedAt, overlap),
  );
  if (json) printJson({ rotatedAt: isoUtc(rotatedAt) });
  else printLine(secret);
  if (overlap > 0)
    tell(`Until ${isoUtc(rotatedAt + overlap)}, webhook-signature has a signature of the former secret too.`);
}

async function sendTest({ topic, json }: JsonFlag & { topic: string }, command: Command): Promise<void> {
  const id = await withShop(command, (store, shop) =>
    queueTestEvent(store, { shop, actor: operator(), topic: topic.trim() }, Date.now()),
  );
  if (json) return printJson({ id });
  printLine(id);
  tell(
    `The test event is queued. A running \`sds serve\` sends it now. See the result with \`sds delivery show ${id}\`.`,
  );
}

function show(settings: WebhookSettings, json: boolean | undefined): void {
  if (json) printJson(settings);
  else printFields({ url: settings.url ?? "none", topics: settings.topics.join(", ") || "none" });
}
