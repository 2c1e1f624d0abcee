/** @jsxImportSource preact */
import { saveEndpoint } from "../../actions/endpoint.ts";
import { queueTestEvent } from "../../actions/test-event.ts";
import { TOPIC_NAMES, TOPICS } from "../../domain/events/event.ts";
import { hasAccess } from "../../domain/shop.ts";
import { printable } from "../../lib/log.ts";
import { sentence } from "../../lib/text.ts";
import type { WebhookSettings } from "../../store/port/webhooks.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler, Notice } from "./admin-request.ts";
import { Confirm, FieldError, Form, fieldAttributes, Link, OnceField } from "./components.tsx";
import { reasonOf } from "./form.ts";
import { EmptySection, SAMPLE_EVENT } from "./samples.tsx";
import { SecretPart, WEBHOOKS } from "./signing-secret.tsx";

/** Content of the page in addition to the stored settings: a refused form, or the secret. */
interface FormState {
  typed?: { url: string; topics: readonly string[] };
  error?: string;
  testError?: string;
  secret?: string;
}

export const showWebhooks: Handler = (request, dependencies) => webhooksPage(request, dependencies);

export const saveWebhooks: Handler = async (request, dependencies) => {
  const { shop, form } = request;
  const typed = { url: form.get("url") ?? "", topics: form.getAll("topics") };
  const change = { url: typed.url.trim(), topics: typed.topics };
  try {
    const save = { shop, change, actor: "merchant" as const };
    const { settings, warnings } = await saveEndpoint(dependencies, save, dependencies.now());
    return { to: WEBHOOKS, notices: savedNotices(settings, warnings) };
  } catch (thrown) {
    return webhooksPage(request, dependencies, { typed, error: reasonOf(thrown, "invalid") });
  }
};

export const showSecret: Handler = async (request, dependencies) =>
  webhooksPage(request, dependencies, {
    secret: await dependencies.store.webhooks.secret(request.shop.id, dependencies.now()),
  });

export const askToClear: Handler = async ({ shop }, { store }) => {
  const { url } = await store.webhooks.settings(shop.id);
  const content = (
    <Confirm id="clear-endpoint" action={`${WEBHOOKS}/clear`} button="Remove the endpoint" back={WEBHOOKS}>
      <p>
        Remove the endpoint <strong>{printable(url ?? "(there is none)")}</strong>? From then on no webhook is queued,
        and webhooks that are still waiting fail. The delivery log stays.
      </p>
    </Confirm>
  );
  return { title: "Remove the endpoint", tab: WEBHOOKS, content };
};

export const clearWebhooks: Handler = async ({ shop }, { store }) => {
  await store.webhooks.clear(shop.id);
  return { to: WEBHOOKS, notices: [{ text: "Webhooks are off." }] };
};

/** Queues a test event, and redirects to the page of its delivery, where the result appears later. */
export const sendTestEvent: Handler = async (request, dependencies) => {
  const { store, now, wake } = dependencies;
  try {
    const id = await queueTestEvent(store, { shop: request.shop, topic: request.form.get("topic") ?? "" }, now());
    wake();
    return { to: `/deliveries/${id}` };
  } catch (thrown) {
    return webhooksPage(request, dependencies, { testError: reasonOf(thrown, "invalid", "failed") });
  }
};

function savedNotices({ topics }: WebhookSettings, warnings: readonly string[]): Notice[] {
  return [
    { text: topics.length === 0 ? "Saved. Nothing is sent yet: choose topics." : "Saved." },
    ...warnings.map((warning) => ({ text: sentence(warning), tone: "warning" as const })),
  ];
}

async function webhooksPage(
  request: AdminRequest,
  { store, now }: AdminDependencies,
  shown: FormState = {},
): Promise<AdminPage> {
  const settings = await store.webhooks.settings(request.shop.id);
  const overlapEndsAt = (await store.webhooks.overlapEndsAt(request.shop.id)) ?? 0;
  const refused = shown.error !== undefined || shown.testError !== undefined;
  const content = (
    <>
      <p>When something happens to this shop's subscriptions, a signed JSON event is sent to the endpoint below.</p>
      {settings.url === null ? (
        <EmptySection id="no-endpoint" sample={SAMPLE_EVENT}>
          No endpoint is set, so nothing is sent. Enter a URL, choose topics, save, and then send a test event.
        </EmptySection>
      ) : null}
      <EndpointForm request={request} settings={settings} shown={shown} />
      <SecretPart secret={shown.secret} overlapEndsAt={overlapEndsAt > now() ? overlapEndsAt : null} />
      <TestForm request={request} settings={settings} shown={shown} />
    </>
  );
  return { title: "Webhooks", tab: WEBHOOKS, status: refused ? 422 : 200, content };
}

interface EndpointProps {
  request: AdminRequest;
  settings: WebhookSettings;
  shown: FormState;
}

function EndpointForm({ request, settings, shown: { typed, error } }: EndpointProps) {
  const topics: readonly string[] = typed?.topics ?? settings.topics;
  return (
    <Form id="endpoint" action={WEBHOOKS} aria-labelledby="endpoint-heading">
      <h2 id="endpoint-heading">Endpoint</h2>
      <fieldset disabled={!hasAccess(request.shop.plan)}>
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
          {...fieldAttributes(error, "url-error", "url-help")}
        />
        <FieldError id="url-error" error={error} />
        <small id="url-help">
          The URL must begin with https://, have a public address, and use port 443 or a port from 1024 up. The endpoint
          must answer with a 2xx status within 10 seconds.
        </small>
        <fieldset id="topics">
          <legend>Topics</legend>
          {TOPIC_NAMES.map((topic) => (
            <div class="choice">
              <input
                type="checkbox"
                id={`topic-${topic}`}
                name="topics"
                value={topic}
                checked={topics.includes(topic)}
                aria-describedby={`about-${topic}`}
              />
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
            <Link id="clear" to={`${WEBHOOKS}/clear`}>
              Remove the endpoint
            </Link>
          )}
        </div>
      </fieldset>
    </Form>
  );
}

function TestForm({ request, settings, shown: { testError: error } }: EndpointProps) {
  const chosen = request.form.get("topic");
  return (
    <Form id="test-event" action={`${WEBHOOKS}/test`} aria-labelledby="test-heading">
      <h2 id="test-heading">Send a test event</h2>
      <OnceField />
      <fieldset disabled={!hasAccess(request.shop.plan) || settings.url === null}>
        <label for="topic">Topic</label>
        <select id="topic" name="topic" {...fieldAttributes(error, "topic-error", "topic-help")}>
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
            : "A sample event is sent, even if its topic is not chosen above. The delivery log marks it as a test."}
        </small>
        <button type="submit" id="send-test">
          Send
        </button>
      </fieldset>
    </Form>
  );
}
