import type { Command } from "commander";
import { acceptEndpoint } from "../delivery/address.ts";
import { queueTestEvent } from "../delivery/test-event.ts";
import { SdsError } from "../domain/error.ts";
import { parseTopics, TOPIC_NAMES, TOPICS, type Topic } from "../domain/event.ts";
import type { WebhookSettings } from "../store/webhooks.ts";
import { chooseShop, configOf, example, JSON_OPTION, SHOP_OPTION, withStore } from "./context.ts";
import { resolveName } from "./dependencies.ts";
import { printFields, printJson, printLine, tell } from "./print.ts";

interface Options {
  shop?: string;
  json?: boolean;
  url?: string;
  topics?: string;
  allTopics?: boolean;
  topic?: string;
}

const TOPIC_HELP = `\nTopics:\n${TOPIC_NAMES.map((topic) => `  ${topic.padEnd(24)}${TOPICS[topic]}`).join("\n")}\n`;

export function addWebhookCommands(program: Command): void {
  const webhook = program
    .command("webhook")
    .description("where a shop's webhooks go, which topics, signed with what")
    .addHelpText("after", example("sds webhook set --url https://hooks.example.com/sds --all-topics"));

  webhook
    .command("set")
    .description("set the endpoint's URL, the topics, or both")
    .option("--url <url>", "https:// URL of the endpoint")
    .option("--topics <topics>", "topics, separated by commas; the others are not sent")
    .option("--all-topics", "all eight topics")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", TOPIC_HELP + example("sds webhook set --url https://hooks.example.com/sds --topics order.charged,order.failed"))
    .action(async (options: Options, command: Command) => {
      if (options.topics !== undefined && options.allTopics === true) throw new SdsError("invalid", "say either --topics or --all-topics");
      const topics = options.allTopics === true ? TOPIC_NAMES : options.topics === undefined ? undefined : parseTopics(split(options.topics));
      if (options.url === undefined && topics === undefined) throw new SdsError("invalid", "say what to set: --url, --topics or --all-topics");
      if (options.url !== undefined) await checkUrl(options.url, command);
      const change = { ...(options.url !== undefined && { url: options.url }), ...(topics !== undefined && { topics }) };
      const settings = await withStore(command, async (store) => store.webhooks.set((await chooseShop(store, options.shop)).id, change, Date.now()));
      show(settings, options);
      if (settings.url === null) tell("Nothing is sent yet: set a URL with `sds webhook set --url ...`.");
      else if (settings.topics.length === 0) tell("Nothing is sent yet: choose topics with `sds webhook set --all-topics` or --topics.");
    });

  webhook
    .command("show")
    .description("show URL and topics")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds webhook show"))
    .action(async (options: Options, command: Command) => {
      show(await withStore(command, async (store) => store.webhooks.settings((await chooseShop(store, options.shop)).id)), options);
    });

  webhook
    .command("clear")
    .description("send no more webhooks; what is in the log stays")
    .option(...SHOP_OPTION)
    .addHelpText("after", example("sds webhook clear"))
    .action(async (options: Options, command: Command) => {
      await withStore(command, async (store) => store.webhooks.clear((await chooseShop(store, options.shop)).id));
      tell("Webhooks are off.");
    });

  webhook
    .command("secret")
    .description("print the signing secret")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds webhook secret"))
    .action(async (options: Options, command: Command) => {
      const secret = await withStore(command, async (store) => store.webhooks.secret((await chooseShop(store, options.shop)).id, Date.now()));
      if (options.json) printJson({ secret });
      else printLine(secret);
    });

  webhook
    .command("rotate-secret")
    .description("make a new signing secret for what is queued from now on, and print it; older deliveries keep theirs")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds webhook rotate-secret"))
    .action(async (options: Options, command: Command) => {
      const secret = await withStore(command, async (store) => store.webhooks.rotateSecret((await chooseShop(store, options.shop)).id, Date.now()));
      if (options.json) printJson({ secret });
      else printLine(secret);
    });

  webhook
    .command("test")
    .description("send a sample event to the endpoint, marked as a test in the log, and print its delivery id")
    .option("--topic <topic>", "the event's topic", "subscription.created")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds webhook test --topic order.failed"))
    .action(async (options: Options, command: Command) => {
      const [topic = "subscription.created" as Topic] = parseTopics(split(options.topic ?? ""));
      const id = await withStore(command, async (store) => queueTestEvent(store, await chooseShop(store, options.shop), topic, Date.now()));
      if (options.json) printJson({ id });
      else {
        printLine(id);
        tell(`Queued: a running \`sds serve\` sends it now; \`sds delivery show ${id}\` tells what came of it.`);
      }
    });
}

function split(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}

async function checkUrl(url: string, command: Command): Promise<void> {
  const warning = await acceptEndpoint(url, resolveName, configOf(command).egressAllow);
  if (warning !== undefined) tell(`sds: warning: ${warning}`);
}

function show(settings: WebhookSettings, options: Options): void {
  if (options.json) printJson(settings);
  else printFields({ url: settings.url ?? "none", topics: settings.topics.join(", ") || "none" });
}
