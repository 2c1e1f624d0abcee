import { TRIGGER_HANDLES, TRIGGERS } from "../../domain/events/trigger.ts";
import { ASKED_SCOPES, OPTIONAL_SCOPES } from "../../domain/platform/connection.ts";
import { API_VERSION } from "../api/address.ts";
import { COMPLIANCE_TOPICS, topicSubscriptions } from "../api/topics.ts";

/** Maps a scope to the scope that it needs. */
const NEEDED_BY: Record<string, string> = { read_all_orders: "read_orders" };

/**
 * Returns the scopes that the app asks a shop for.
 * @param without scopes to leave out, because the platform has not approved them for the app
 * @param optional scopes to ask for too
 */
export function appScopes(without: readonly string[], optional: readonly string[] = []): string[] {
  const asked = [...ASKED_SCOPES, ...OPTIONAL_SCOPES.filter((scope) => optional.includes(scope))];
  return asked.filter((scope) => !without.includes(scope) && !without.includes(NEEDED_BY[scope] ?? ""));
}

/** A subscription to webhooks, with the names of `shopify.app.toml`. */
export interface WebhookSubscription {
  topics?: readonly string[];
  compliance_topics?: readonly string[];
  include_fields?: readonly string[];
  uri: string;
}

/** The name of the app's file, which the platform's tool reads. */
export const APP_FILE = "shopify.app.toml";
/** The beginning of an app file that `sds` wrote completely. */
export const OWN_FILE = "# Written by `sds platform files`.";

/**
 * Writes the files for the platform's tool: one with scopes and webhooks, and one for each trigger's extension.
 * @param scopes the scopes that the app asks for. Topics that need other scopes are left out
 * @returns the texts of the files by path
 */
export function appFiles(
  address: string,
  clientId: string | null,
  scopes: readonly string[] = ASKED_SCOPES,
): Record<string, string> {
  return { [APP_FILE]: appFile(address.replace(/\/+$/, ""), clientId, scopes), ...triggerFiles("extensions") };
}

/** Returns the texts of the triggers' files by path. @param folder the folder of the app's extensions */
export function triggerFiles(folder: string): Record<string, string> {
  const files = TRIGGER_HANDLES.map((handle) => [`${folder}/${handle}/shopify.extension.toml`, extensionFile(handle)]);
  return Object.fromEntries(files);
}

function appFile(address: string, clientId: string | null, scopes: readonly string[]): string {
  return `${OWN_FILE} Add the client id if it is missing, then run: shopify app deploy
client_id = ${quoted(clientId ?? "")}
name = "Subscription Data Service"
application_url = ${quoted(pageUrl(address))}
embedded = true

[access_scopes]
scopes = ${quoted(scopes.join(","))}

[auth]
redirect_urls = [${quoted(pageUrl(address))}]

${WEBHOOKS_SECTION}
${webhookSubscriptions(address, scopes).map(subscriptionText).join("\n")}`;
}

/** Returns the URL of the page that the platform's admin shows when somebody opens the app. */
export function pageUrl(address: string): string {
  return `${address.replace(/\/+$/, "")}/app`;
}

/** The section of the app's file that contains the webhook subscriptions. */
export const WEBHOOKS_SECTION = `[webhooks]
api_version = ${quoted(API_VERSION)}
`;

/**
 * Returns the webhook subscriptions that an app with these scopes needs. Each has an absolute address, because the
 * platform's tool would append a relative address to the application's URL, which ends in `/app`.
 */
export function webhookSubscriptions(address: string, scopes: readonly string[]): WebhookSubscription[] {
  const uri = `${address}/platform/webhooks`;
  const subscriptions = topicSubscriptions(scopes).map(({ topics, fields }) => ({
    topics,
    ...(fields !== undefined && { include_fields: fields }),
    uri,
  }));
  return [...subscriptions.slice(0, 1), { compliance_topics: COMPLIANCE_TOPICS, uri }, ...subscriptions.slice(1)];
}

export function subscriptionText({ topics, compliance_topics, include_fields, uri }: WebhookSubscription): string {
  const onlyFields =
    include_fields === undefined ? "" : `  include_fields = [${include_fields.map(quoted).join(", ")}]\n`;
  return `  [[webhooks.subscriptions]]
  ${topics === undefined ? "compliance_topics" : "topics"} = [
${list(topics ?? compliance_topics ?? [])}
  ]
${onlyFields}  uri = ${quoted(uri)}
`;
}

function extensionFile(handle: keyof typeof TRIGGERS): string {
  const { name, description, hasCustomer, fields } = TRIGGERS[handle];
  const customer = `
  [[settings.fields]]
  type = "customer_reference"
`;
  const settings = Object.entries(fields).map(
    ([key, type]) => `
  [[settings.fields]]
  type = ${quoted(type)}
  key = ${quoted(key)}
`,
  );
  return `# Written by \`sds platform files\`. The handle cannot be changed after the first deploy.
[[extensions]]
name = ${quoted(name)}
type = "flow_trigger"
handle = ${quoted(handle)}
description = ${quoted(description)}

[settings]
${[...(hasCustomer ? [customer] : []), ...settings].join("")}`;
}

function list(items: readonly string[]): string {
  return items.map((item) => `    ${quoted(item)},`).join("\n");
}

/** Returns a text as a basic string of TOML, which has the same escapes as JSON. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
