/** @jsxImportSource preact */
import * as actions from "../../../actions/endpoint.ts";
import { queueTestEvent } from "../../../actions/test-event.ts";
import { TOPIC_NAMES } from "../../../domain/events/event.ts";
import { hasAccess } from "../../../domain/shop.ts";
import { printable } from "../../../lib/log.ts";
import { counted, sentence } from "../../../lib/text.ts";
import type { WebhookSettings } from "../../../store/port/webhooks.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler, Notice } from "../admin-request.ts";
import { Confirm, FieldError, Form, fieldAttributes, Link, OnceField } from "../components.tsx";
import { reasonOf } from "../form.ts";
import { EmptySection, SAMPLE_EVENT } from "../samples.tsx";
import { findTestEvent, TestResult } from "./test-result.tsx";

/** Path of the endpoint's tab. The paths of the tab's forms begin with this path. */
const TAB = "/webhooks";

/** The typed URL of a refused form, and the reason of the refusal. */
interface RefusedUrl {
  url?: string;
  error?: string;
  testError?: string;
}

export const showEndpoint: Handler = (request, dependencies) => endpointPage(request, dependencies);

export const saveUrl: Handler = async (request, dependencies) => {
  const { shop, actor, form } = request;
  const url = form.get("url") ?? "";
  try {
    const save = { shop, change: { url: url.trim() }, actor };
    const { settings, warnings } = await actions.saveEndpoint(dependencies, save, dependencies.now());
    const notices = warnings.map((warning): Notice => ({ text: sentence(warning), tone: "warning" }));
    return settings.topics.length === 0
      ? { to: "/webhooks/topics", notices: [{ text: "Saved. Now choose what your endpoint gets." }, ...notices] }
      : { to: TAB, notices: [{ text: "Saved." }, ...notices] };
  } catch (thrown) {
    return endpointPage(request, dependencies, { url, error: reasonOf(thrown, "invalid") });
  }
};

export const askToClear: Handler = async ({ shop }, { store }) => {
  const { url } = await store.webhooks.settings(shop.id);
  if (url === null) return { to: TAB };
  const content = (
    <Confirm id="clear-endpoint" action={`${TAB}/clear`} button="Remove the endpoint" back={TAB}>
      <p>
        Remove the endpoint <strong>{printable(url)}</strong>? From then on no webhook is queued, and webhooks that are
        still waiting fail. The delivery log stays.
      </p>
    </Confirm>
  );
  return { title: "Remove the endpoint", tab: TAB, trail: { to: TAB, name: "Webhooks" }, content };
};

export const clearWebhooks: Handler = async (request, { store, now }) => {
  await actions.clearEndpoint(store, request, now());
  return { to: TAB, notices: [{ text: "Webhooks are off." }] };
};

/** Queues a test event. The page shows the verdict when the endpoint has answered. */
export const sendTestEvent: Handler = async (request, dependencies) => {
  const { store, now, wake } = dependencies;
  try {
    const { shop, actor, form } = request;
    await queueTestEvent(store, { shop, actor, topic: form.get("topic") ?? "" }, now());
    wake();
    // Jumps to the result, because it is below the fold on a phone.
    return { to: `${TAB}#test` };
  } catch (thrown) {
    return endpointPage(request, dependencies, { testError: reasonOf(thrown, "invalid", "failed") });
  }
};

async function endpointPage(
  { shop }: AdminRequest,
  { store, now }: AdminDependencies,
  refused?: RefusedUrl,
): Promise<AdminPage> {
  const settings = await store.webhooks.settings(shop.id);
  const test = await findTestEvent(store, shop.id, settings.url, now());
  const live = <TestResult test={test} />;
  const canChange = hasAccess(shop.plan);
  const content = (
    <>
      <p>When something happens to this shop's subscriptions, your endpoint gets a signed webhook.</p>
      <div class="columns">
        <section class="card" aria-labelledby="endpoint-heading">
          <h2 id="endpoint-heading">Endpoint</h2>
          <EndpointForm settings={settings} refused={refused} canChange={canChange} />
        </section>
        <section class="card" id="test" aria-labelledby="test-heading">
          <h2 id="test-heading">Test</h2>
          {live}
          <TestForm
            canSend={canChange && settings.url !== null}
            topic={test?.delivery.topic}
            error={refused?.testError}
          />
        </section>
      </div>
      {settings.url === null ? (
        <EmptySection id="no-endpoint" sample={SAMPLE_EVENT}>
          No endpoint is set, so nothing is sent. Enter a URL, choose topics, and then send a test event.
        </EmptySection>
      ) : null}
    </>
  );
  return { title: "Webhooks", tab: TAB, status: refused === undefined ? 200 : 422, content, live };
}

interface EndpointProps {
  settings: WebhookSettings;
  refused: RefusedUrl | undefined;
  canChange: boolean;
}

function EndpointForm({ settings: { url, topics }, refused, canChange }: EndpointProps) {
  return (
    <Form id="endpoint" action={TAB} aria-labelledby="endpoint-heading">
      <fieldset disabled={!canChange}>
        <label for="url">URL</label>
        <input
          id="url"
          name="url"
          type="text"
          inputMode="url"
          autocomplete="off"
          spellcheck={false}
          value={refused?.url ?? url ?? ""}
          placeholder="https://hooks.example.com/sds"
          {...fieldAttributes(refused?.error, "url-error", "url-help")}
        />
        <FieldError id="url-error" error={refused?.error} />
        <small id="url-help">
          A public address that begins with https://. It must answer with a 2xx status within 10 seconds.
        </small>
        <p id="chosen">
          It gets {topics.length} of {counted(TOPIC_NAMES.length, "topic", "topics")}.{" "}
          <Link to="/webhooks/topics">Choose topics</Link>
        </p>
        <div class="actions">
          <button type="submit" id="save-endpoint">
            Save
          </button>
          {url === null ? null : (
            <Link id="clear" to={`${TAB}/clear`}>
              Remove the endpoint
            </Link>
          )}
        </div>
      </fieldset>
    </Form>
  );
}

interface TestFormProps {
  canSend: boolean;
  /** The topic of the newest test. */
  topic: string | undefined;
  error: string | undefined;
}

function TestForm({ canSend, topic: chosen, error }: TestFormProps) {
  return (
    <Form id="test-event" action={`${TAB}/test`} aria-labelledby="test-heading">
      <OnceField />
      <fieldset disabled={!canSend}>
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
          Your endpoint gets a sample with made-up ids, also of a topic that is not chosen. The log marks it as a test.
        </small>
        <button type="submit" id="send-test" class="outline">
          Send test event
        </button>
      </fieldset>
    </Form>
  );
}
