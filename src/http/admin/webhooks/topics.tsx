/** @jsxImportSource preact */
import type { TObject } from "@sinclair/typebox";
import { saveEndpoint } from "../../../actions/endpoint.ts";
import { TOPIC_NAMES, TOPICS, type Topic } from "../../../domain/events/event.ts";
import { ENVELOPE, EVENT_DATA } from "../../../domain/events/event-schemas.ts";
import { hasAccess } from "../../../domain/shop.ts";
import { typeText } from "../../docs/reference-schemas.ts";
import { createSchemaWriter } from "../../openapi/json-schema.ts";
import { sampleBody } from "../../openapi/webhooks.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler } from "../admin-request.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { Code, InlineCode } from "../code.tsx";
import { Form, Link } from "../components.tsx";
import { reasonOf } from "../form.ts";

const TAB = "/webhooks/topics";

/** The topics that were chosen in a refused form, and the reason of the refusal. */
interface RefusedTopics {
  topics: readonly string[];
  error: string;
}

export const showTopics: Handler = (request, dependencies) => topicsPage(request, dependencies);

export const saveTopics: Handler = async (request, dependencies) => {
  const { shop, actor, form } = request;
  const topics = form.getAll("topics");
  try {
    const { settings } = await saveEndpoint(dependencies, { shop, change: { topics }, actor }, dependencies.now());
    const text =
      settings.topics.length === 0
        ? "Saved. No webhook is sent, because no topic is chosen."
        : settings.url === null
          ? "Saved. Nothing is sent yet: set the URL of your endpoint."
          : "Saved.";
    return { to: TAB, notices: [{ text }] };
  } catch (thrown) {
    return topicsPage(request, dependencies, { topics, error: reasonOf(thrown, "invalid") });
  }
};

async function topicsPage(
  { shop }: AdminRequest,
  { store }: AdminDependencies,
  refused?: RefusedTopics,
): Promise<AdminPage> {
  const chosen: readonly string[] = refused?.topics ?? (await store.webhooks.settings(shop.id)).topics;
  const content = (
    <>
      <p>Choose what your endpoint gets. Each webhook is about one event, and its body is JSON.</p>
      <Form id="choose-topics" action={TAB}>
        {refused === undefined ? null : (
          <p class="notice bad" role="alert">
            {refused.error}
          </p>
        )}
        <fieldset disabled={!hasAccess(shop.plan)} id="topics">
          <legend class="visually-hidden">Topics</legend>
          <ul class="catalogue">
            {TOPIC_NAMES.map((topic) => (
              <TopicItem topic={topic} isChosen={chosen.includes(topic)} />
            ))}
          </ul>
          <div class="actions">
            <button type="submit" id="save-topics">
              Save topics
            </button>
            <button type="button" id="choose-all" class="outline" data-choose-all="topics" hidden>
              Choose all
            </button>
          </div>
        </fieldset>
      </Form>
      <details id="every-body" class="about">
        <summary>Fields of every body</summary>
        <FieldTable id="envelope" name="Fields of every body" schema={ENVELOPE} />
      </details>
    </>
  );
  return { title: "Webhooks", tab: TAB, status: refused === undefined ? 200 : 422, content };
}

function TopicItem({ topic, isChosen }: { topic: Topic; isChosen: boolean }) {
  return (
    <li>
      <div class="choice">
        <input
          type="checkbox"
          id={`topic-${topic}`}
          name="topics"
          value={topic}
          checked={isChosen}
          aria-describedby={`about-${topic}`}
        />
        <label for={`topic-${topic}`}>
          <code>{topic}</code>
        </label>
        <small id={`about-${topic}`}>{TOPICS[topic]}</small>
      </div>
      <details>
        <summary>
          Sample and schema<span class="visually-hidden"> of {topic}</span>
        </summary>
        <div class="columns">
          <Code id={`sample-${topic}`} label={`Sample of ${topic}`} text={JSON.stringify(sampleBody(topic), null, 2)} />
          <div>
            <FieldTable id={`schema-${topic}`} name={`Fields of data of ${topic}`} schema={EVENT_DATA[topic]} />
          </div>
        </div>
        <p>
          <Link to={`/deliveries?topic=${topic}`}>See what was sent</Link>
        </p>
      </details>
    </li>
  );
}

const SCHEMAS = createSchemaWriter(() => false);

function FieldTable({ id, name, schema }: { id: string; name: string; schema: TObject }) {
  const { properties = {}, description } = SCHEMAS.define(schema);
  return (
    <>
      <CardTable id={id} name={name} headings={["Field", "Type", "Meaning"]}>
        {Object.entries(properties).map(([field, each]) => (
          <Row>
            <NameCell>
              <code>{field}</code>
            </NameCell>
            <Cell>
              <InlineCode text={typeText(each)} />
            </Cell>
            <Cell>
              <InlineCode text={each.description ?? ""} />
            </Cell>
          </Row>
        ))}
      </CardTable>
      {description === undefined ? null : <p>{description}</p>}
    </>
  );
}
