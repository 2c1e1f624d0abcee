import { isDeepStrictEqual } from "node:util";
import { invalid, messageOf } from "../../domain/error.ts";
import { asObject, type JsonObject } from "../../lib/json.ts";
import {
  OWN_FILE,
  pageUrl,
  subscriptionText,
  WEBHOOKS_SECTION,
  type WebhookSubscription,
  webhookSubscriptions,
} from "./app-files.ts";

/** The settings that the app's file must have for `sds` to work. */
interface Needs {
  address: string;
  /** null if the operator named no app. */
  clientId: string | null;
  scopes: readonly string[];
}

interface MergedAppFile {
  text: string;
  /** Descriptions of the additions, for the operator. */
  added: string[];
  /** Instructions for the operator, where `sds` must not change the file. */
  notes: string[];
  /** The folder of the app's extensions. */
  extensions: string;
}

/** Maximum total length of the texts that `change` tries. A file of 1,000 lines needs less, and takes seconds. */
const MAX_GUESSED_LENGTH = 20_000_000;

type Report = Pick<MergedAppFile, "added" | "notes">;

/**
 * Adds scopes and webhooks to the file of an app that exists. A deploy replaces the app's whole configuration, so
 * everything else in the file stays byte for byte: address, redirects, handle, comments and order.
 * @throws SdsError `invalid` for a file that cannot be read or changed, and for the file of another app
 */
export function mergeAppFile(text: string, { address, clientId, scopes }: Needs): MergedAppFile {
  const appFile = new AppFile(text);
  const fileId = appFile.content["client_id"];
  if (clientId !== null && typeof fileId === "string" && fileId !== "" && fileId !== clientId)
    throw invalid(`it is the file of the app ${fileId.slice(0, 100)}, but SDS_PLATFORM_CLIENT_ID is ${clientId}`);
  const report: Report = { added: [], notes: [] };
  joinScopes(appFile, scopes, report);
  noteOlderFile(appFile, text, address, report);
  const missing = webhookSubscriptions(address.replace(/\/+$/, ""), scopes).flatMap((wanted) =>
    wanted.topics === undefined ? missingCompliance(appFile, wanted, report) : missingTopics(appFile, wanted, report),
  );
  if (missing.length > 0) addSubscriptions(appFile, missing);
  return { text: appFile.text, ...report, extensions: extensionsFolder(appFile.content) };
}

/** Adds a note if an earlier version wrote the file. Such an app opens no page of `sds` in the platform's admin. */
function noteOlderFile({ content }: AppFile, text: string, address: string, { notes }: Report): void {
  const isOpened = content["application_url"] === pageUrl(address) && content["embedded"] === true;
  if (!text.startsWith(OWN_FILE) || isOpened) return;
  notes.push(
    `the app does not open ${pageUrl(address)} in the platform's admin: write all files again with --force, ` +
      "after `sds serve` of this version runs",
  );
}

/** An app's file. A change of the file keeps all other bytes. */
class AppFile {
  text: string;
  content: JsonObject;

  constructor(text: string) {
    this.text = text;
    try {
      this.content = Bun.TOML.parse(text) as JsonObject;
    } catch (thrown) {
      throw invalid(`it is not TOML: ${messageOf(thrown).replace(/^TOML Parse error: /, "")}`, thrown);
    }
  }

  get webhooks(): JsonObject {
    return asObject(this.content["webhooks"]) ?? {};
  }

  get subscriptions(): JsonObject[] {
    const stored = this.webhooks["subscriptions"] ?? [];
    if (!Array.isArray(stored)) throw invalid("webhooks.subscriptions is not a list");
    return stored.map((each) => asObject(each) ?? {});
  }

  /** Uses the first text whose content is `wanted`. In each text, the addition is at a different possible position. */
  change(wanted: JsonObject, texts: Iterable<string>): void {
    let guessedLength = 0;
    for (const text of texts) {
      guessedLength += text.length;
      if (guessedLength > MAX_GUESSED_LENGTH) break;
      if (!isDeepStrictEqual(contentOf(text), wanted)) continue;
      this.text = text;
      this.content = wanted;
      return;
    }
    throw invalid(
      "sds cannot add to this file without other changes: write into an empty folder, and copy the parts by hand",
    );
  }
}

function contentOf(text: string): unknown {
  try {
    return Bun.TOML.parse(text);
  } catch {
    return undefined;
  }
}

/** For each occurrence of the anchor, yields the text with the addition after this occurrence. */
function* insertions(text: string, anchor: string, addition: string): Generator<string, void> {
  for (let at = text.indexOf(anchor); at !== -1; at = text.indexOf(anchor, at + 1))
    yield text.slice(0, at + anchor.length) + addition + text.slice(at + anchor.length);
}

/** Adds the scopes that the file lacks. */
function joinScopes(appFile: AppFile, scopes: readonly string[], { added, notes }: Report): void {
  const section = asObject(appFile.content["access_scopes"]);
  const asked = section?.["scopes"];
  const known = [...(typeof asked === "string" ? asked.split(",") : []), ...textsOf(section?.["optional_scopes"])];
  const isKnown = (scope: string) => known.some((one) => one.trim() === scope);
  const missing = scopes.filter((scope) => !isKnown(scope) && !isKnown(scope.replace(/^read_/, "write_")));
  if (missing.length === 0) return;
  if (typeof asked !== "string") {
    // Such an app asks for its scopes in its own code. Scopes in the file would change how shops install the app.
    notes.push(`the file has no scopes: add these where the app asks for its own: ${missing.join(",")}`);
    return;
  }
  const end = asked.trimEnd().length;
  const addition = `${end === 0 ? "" : ","}${missing.join(",")}`;
  const wanted = { ...section, scopes: asked.slice(0, end) + addition + asked.slice(end) };
  const lastScope = /[^\s,]*[\s,]*$/.exec(asked.slice(0, end))?.[0] ?? "";
  const anchors = lastScope === "" ? ['"', "'"] : [lastScope];
  const texts = anchors.flatMap((anchor) => [...insertions(appFile.text, anchor, addition)]);
  appFile.change({ ...appFile.content, access_scopes: wanted }, texts);
  added.push(`scopes: ${missing.join(", ")}`);
}

/** Returns the compliance topics that the file lacks. The platform's tool accepts each topic only once in a file. */
function missingCompliance(
  appFile: AppFile,
  { compliance_topics = [], uri }: WebhookSubscription,
  { added, notes }: Report,
): WebhookSubscription[] {
  // The platform's tool does not accept compliance topics together with this older form.
  const hasOlderForm = appFile.webhooks["privacy_compliance"] !== undefined;
  const addressOf = (topic: string) => {
    const taken = appFile.subscriptions.find((each) => textsOf(each["compliance_topics"]).includes(topic));
    return hasOlderForm ? "the addresses in webhooks.privacy_compliance" : resolvedUri(appFile, taken);
  };
  const elsewhere = compliance_topics.filter((topic) => (addressOf(topic) ?? uri) !== uri);
  if (elsewhere.length > 0) {
    const addresses = [...new Set(elsewhere.map(addressOf))].join(" and ");
    notes.push(
      `the file sends ${elsewhere.join(", ")} to ${addresses}, and allows no second receiver: ` +
        `let this receiver forward them to ${uri}`,
    );
  }
  const missing = compliance_topics.filter((topic) => addressOf(topic) === undefined);
  if (missing.length === 0) return [];
  added.push(`webhooks to ${uri}: ${missing.join(", ")}`);
  return [{ compliance_topics: missing, uri }];
}

/** Adds missing fields to the subscriptions of the file. @returns the topics that the file does not send to `sds` */
function missingTopics(appFile: AppFile, wanted: WebhookSubscription, { added }: Report): WebhookSubscription[] {
  const { topics = [], include_fields = [], uri } = wanted;
  const isOurs = (each: JsonObject) => resolvedUri(appFile, each) === uri && each["filter"] === undefined;
  const sent = new Set(appFile.subscriptions.filter(isOurs).flatMap((each) => textsOf(each["topics"])));
  for (const [index, each] of appFile.subscriptions.entries()) {
    const fields = textsOf(each["include_fields"]);
    const missingFields = include_fields.filter((field) => !fields.includes(field));
    const names = topics.filter((topic) => textsOf(each["topics"]).includes(topic));
    const [last] = fields.slice(-1);
    if (!isOurs(each) || names.length === 0 || missingFields.length === 0 || last === undefined) continue;
    const joined = { ...each, include_fields: [...fields, ...missingFields] };
    const addition = missingFields.map((field) => `, ${JSON.stringify(field)}`).join("");
    const texts = [`"${last}"`, `'${last}'`].flatMap((anchor) => [...insertions(appFile.text, anchor, addition)]);
    const webhooks = { ...appFile.webhooks, subscriptions: appFile.subscriptions.with(index, joined) };
    appFile.change({ ...appFile.content, webhooks }, texts);
    added.push(`fields of ${names.join(", ")}: ${missingFields.join(", ")}`);
  }
  const missing = topics.filter((topic) => !sent.has(topic));
  if (missing.length === 0) return [];
  added.push(`webhooks to ${uri}: ${missing.join(", ")}`);
  return [{ ...wanted, topics: missing }];
}

/** Adds tables at the end, so that all comments keep their places. Adds inline tables if the file uses them. */
function addSubscriptions(appFile: AppFile, missing: readonly WebhookSubscription[]): void {
  const { text, content } = appFile;
  const section = content["webhooks"] === undefined ? `${WEBHOOKS_SECTION}\n` : "";
  const tables = section + missing.map(subscriptionText).join("\n");
  const lines = `${text === "" || text.endsWith("\n") ? "" : "\n"}\n# Added by \`sds platform files\`\n${tables}`;
  const inline = missing.map((each) => `{ ${inlineFields(each)} }`).join(", ");
  function* texts(): Generator<string, void> {
    yield text + (text.includes("\r\n") ? lines.replaceAll("\n", "\r\n") : lines);
    for (const anchor of ["}", "},"]) yield* insertions(text, anchor, anchor === "}" ? `, ${inline}` : ` ${inline},`);
  }
  const subscriptions = [...appFile.subscriptions, ...missing];
  const added = asObject((Bun.TOML.parse(section) as JsonObject)["webhooks"]);
  appFile.change({ ...content, webhooks: { ...added, ...appFile.webhooks, subscriptions } }, texts());
}

function inlineFields(subscription: WebhookSubscription): string {
  return Object.entries(subscription)
    .map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    .join(", ");
}

/** Returns a webhook's address. Like the platform's tool, appends a path to the app's address. */
function resolvedUri({ content }: AppFile, subscription: JsonObject | undefined): string | undefined {
  const uri = subscription?.["uri"];
  if (typeof uri !== "string") return undefined;
  const base = uri.startsWith("/") && typeof content["application_url"] === "string" ? content["application_url"] : "";
  return `${base.replace(/\/+$/, "")}${uri}`.replace(/\/+$/, "");
}

/** Returns the folder in which the platform's tool looks for extensions. */
function extensionsFolder(content: JsonObject): string {
  const folders = textsOf(content["extension_directories"]).flatMap(
    (pattern) => /^(?!\/)([\w./-]+)\/\*{1,2}$/.exec(pattern)?.[1] ?? [],
  );
  return folders.includes("extensions") ? "extensions" : (folders[0] ?? "extensions");
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
