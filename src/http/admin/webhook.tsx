/** @jsxImportSource preact */
import { acceptEndpoint } from "../../delivery/address.ts";
import { queueTestEvent } from "../../delivery/test-event.ts";
import { SdsError } from "../../domain/error.ts";
import { parseTopics, TOPIC_NAMES, TOPICS } from "../../domain/event.ts";
import { hasAccess } from "../../domain/shop.ts";
import { sentence } from "../../lib/text.ts";
import type { WebhookSettings } from "../../store/webhooks.ts";
import type { AdminDependencies, AdminRequest, Handler, Notice, Page } from "./admin-request.ts";
import { Confirm, Copyable, CsrfField, described, Empty, FieldError, OnceField } from "./components.tsx";
import { requireAccess } from "./plan-access.ts";

const WEBHOOKS = "/admin/webhooks";

/** What is shown beside what is stored: what somebody typed and why it was refused, and the secret where it was asked for. */
interface FormState {
  typed?: { url: string; topics: readonly string[] };
  error?: string;
  testError?: string;
  secret?: string;
}

export const showWebhooks: Handler = (visit, parts) => webhooksPage(visit, parts);

export const saveWebhooks: Handler = async (visit, parts) => {
  requireAccess(visit.shop);
  const { store, resolve, allow, now } = parts;
  const typed = { url: visit.form.get("url") ?? "", topics: visit.form.getAll("topics") };
  try {
    const url = typed.url.trim();
    if (url === "") throw new SdsError("invalid", "enter the URL of the endpoint");
    const topics = parseTopics(typed.topics);
    const warning = await acceptEndpoint(url, resolve, allow);
    await store.webhooks.set(visit.shop.id, { url, topics }, now());
    return { to: WEBHOOKS, notices: savedNotices(topics.length, warning) };
  } catch (thrown) {
    if (thrown instanceof SdsError && thrown.code === "invalid") return webhooksPage(visit, parts, { typed, error: sentence(thrown.message) });
    throw thrown;
  }
};

export const showSecret: Handler = async (visit, parts) =>
  webhooksPage(visit, parts, { secret: await parts.store.webhooks.secret(visit.shop.id, parts.now()) });

export const askToRotate: Handler = async ({ csrf }) => {
  const content = (
    <Confirm id="rotate-secret" csrf={csrf} action={`${WEBHOOKS}/rotate`} does="Make a new secret" back={WEBHOOKS}>
      <p>
        Make a new signing secret? What is queued from then on is signed with it, so the receiver has to know it. Deliveries that were queued before keep their
        signature, also when they are sent again: have the receiver take both for a while.
      </p>
    </Confirm>
  );
  return { title: "Rotate the signing secret", section: WEBHOOKS, content };
};

export const rotateSecret: Handler = async ({ shop }, { store, now }) => {
  const value = await store.webhooks.rotateSecret(shop.id, now());
  return { to: WEBHOOKS, notices: [{ text: "This is the new signing secret. Give it to the receiver:", copy: { name: "the new signing secret", value } }] };
};

export const askToClear: Handler = async ({ csrf, shop }, { store }) => {
  const { url } = await store.webhooks.settings(shop.id);
  const content = (
    <Confirm id="clear-endpoint" csrf={csrf} action={`${WEBHOOKS}/clear`} does="Remove the endpoint" back={WEBHOOKS}>
      <p>
        Remove the endpoint <strong>{url ?? "(there is none)"}</strong>? From then on no webhook is queued, and what still waits can't be delivered. The log
        stays.
      </p>
    </Confirm>
  );
  return { title: "Remove the endpoint", section: WEBHOOKS, content };
};

export const clearWebhooks: Handler = async ({ shop }, { store }) => {
  await store.webhooks.clear(shop.id);
  return { to: WEBHOOKS, notices: [{ text: "Webhooks are off." }] };
};

export const sendTestEvent: Handler = async (visit, parts) => {
  const { store, now, wake } = parts;
  try {
    const [topic] = parseTopics(visit.form.getAll("topic"));
    if (topic === undefined) throw new SdsError("invalid", "choose a topic");
    const id = await queueTestEvent(store, visit.shop, topic, now());
    wake();
    return { to: `/admin/deliveries/${id}`, notices: [{ text: "The test event is on its way. What comes of it shows here." }] };
  } catch (thrown) {
    if (thrown instanceof SdsError && (thrown.code === "invalid" || thrown.code === "failed"))
      return webhooksPage(visit, parts, { testError: sentence(thrown.message) });
    throw thrown;
  }
};

function savedNotices(topics: number, warning: string | undefined): Notice[] {
  return [
    { text: topics === 0 ? "Saved. Nothing is sent yet: choose topics." : "Saved." },
    ...(warning === undefined ? [] : [{ text: sentence(warning), tone: "warning" as const }]),
  ];
}

async function webhooksPage(visit: AdminRequest, { store }: AdminDependencies, shown: FormState = {}): Promise<Page> {
  const settings = await store.webhooks.settings(visit.shop.id);
  const refused = shown.error !== undefined || shown.testError !== undefined;
  const content = (
    <>
      <p>When something happens to this shop's subscriptions, a signed JSON event is sent to one endpoint.</p>
      {settings.url === null ? (
        <Empty id="no-endpoint">No endpoint is set, so nothing is sent. Enter its URL, choose topics, save, and then send a test event.</Empty>
      ) : null}
      <EndpointForm visit={visit} settings={settings} shown={shown} />
      <SecretPart visit={visit} secret={shown.secret} />
      <TestForm visit={visit} settings={settings} error={shown.testError} />
    </>
  );
  return { title: "Webhooks", section: WEBHOOKS, status: refused ? 422 : 200, content };
}

function EndpointForm({ visit, settings, shown: { typed, error } }: { visit: AdminRequest; settings: WebhookSettings; shown: FormState }) {
  const topics: readonly string[] = typed?.topics ?? settings.topics;
  return (
    <form id="endpoint" method="post" action={WEBHOOKS} aria-labelledby="endpoint-heading">
      <h2 id="endpoint-heading">Endpoint</h2>
      <CsrfField csrf={visit.csrf} />
      <fieldset disabled={!hasAccess(visit.shop.plan)}>
        <label for="url">URL</label>
        <input
          id="url"
          name="url"
          type="text"
          inputMode="url"
          autocomplete="off"
          spellcheck={false}
          value={typed?.url ?? settings.url ?? ""}
          placeholder="https://hooks.example.com/sds"
          {...described(error, "url-error", "url-help")}
        />
        <FieldError id="url-error" error={error} />
        <small id="url-help">https:// alone, at a public address, on port 443 or 1024 and above. It has to answer with a 2xx within 10 seconds.</small>
        <fieldset id="topics">
          <legend>Topics</legend>
          {TOPIC_NAMES.map((topic) => (
            <div class="choice">
              <input type="checkbox" id={`topic-${topic}`} name="topics" value={topic} checked={topics.includes(topic)} aria-describedby={`about-${topic}`} />
              <label for={`topic-${topic}`}>
                <code>{topic}</code>
              </label>
              <small id={`about-${topic}`}>{TOPICS[topic]}</small>
            </div>
          ))}
          <button type="button" id="choose-all" class="small outline" data-choose-all="topics" hidden>
            Choose all
          </button>
        </fieldset>
        <div class="actions">
          <button type="submit" id="save-endpoint">
            Save
          </button>
          {settings.url === null ? null : (
            <a id="clear" href={`${WEBHOOKS}/clear`}>
              Remove the endpoint
            </a>
          )}
        </div>
      </fieldset>
    </form>
  );
}

function SecretPart({ visit, secret }: { visit: AdminRequest; secret: string | undefined }) {
  return (
    <section aria-labelledby="secret-heading">
      <h2 id="secret-heading">Signing secret</h2>
      <p>
        Every delivery carries <code>X-Service-Signature: sha256=</code> and the HMAC-SHA256 of its body with this secret, in hexadecimal. The receiver computes
        the same and compares.
      </p>
      {secret === undefined ? (
        <form id="show-secret" class="inline" method="post" action={`${WEBHOOKS}/secret`}>
          <CsrfField csrf={visit.csrf} />
          <button type="submit" class="outline">
            Show the signing secret
          </button>
        </form>
      ) : (
        <Copyable id="secret" value={secret} name="the signing secret" />
      )}
      <p>
        <a id="rotate" href={`${WEBHOOKS}/rotate`}>
          Rotate the signing secret
        </a>
      </p>
    </section>
  );
}

function TestForm({ visit, settings, error }: { visit: AdminRequest; settings: WebhookSettings; error: string | undefined }) {
  const chosen = visit.form.get("topic");
  return (
    <form id="test-event" method="post" action={`${WEBHOOKS}/test`} aria-labelledby="test-heading">
      <h2 id="test-heading">Send a test event</h2>
      <CsrfField csrf={visit.csrf} />
      <OnceField />
      <fieldset disabled={!hasAccess(visit.shop.plan) || settings.url === null}>
        <label for="topic">Topic</label>
        <select id="topic" name="topic" {...described(error, "topic-error", "topic-help")}>
          {TOPIC_NAMES.map((topic) => (
            <option value={topic} selected={topic === chosen}>
              {topic}
            </option>
          ))}
        </select>
        <FieldError id="topic-error" error={error} />
        <small id="topic-help">
          {settings.url === null
            ? "Set the endpoint first."
            : "A sample, sent to the endpoint whether or not its topic is chosen, and marked as a test in the log."}
        </small>
        <button type="submit" id="send-test">
          Send
        </button>
      </fieldset>
    </form>
  );
}
