import { type Exact, exactJson } from "./exact-json.ts";

interface Subscription {
  topics?: string[];
  compliance_topics?: string[];
  include_fields?: string[];
  filter?: string;
  uri: string;
}

interface AppFile {
  access_scopes?: { scopes?: string };
  webhooks?: { subscriptions?: Subscription[]; privacy_compliance?: object };
}

/** The deployed configuration of the app. Before the first deploy, every webhook is sent whole. */
export class DeployedApp {
  file: AppFile | undefined;
  private readonly sent = new Set<string>();

  /** Replaces the whole configuration, as the platform does. @param text of `shopify.app.toml` @throws if refused */
  deploy(text: string): void {
    const file = Bun.TOML.parse(text) as AppFile;
    refuse(file);
    this.file = file;
  }

  /**
   * The payload as the platform sends it; undefined if the platform does not send it. With `include_fields`, the
   * platform drops webhooks that do not differ from an earlier webhook of the topic.
   */
  payloadFor(topic: string, payload: Exact): Exact | undefined {
    if (this.file === undefined) return payload;
    const subscription = this.file.webhooks?.subscriptions?.find(({ topics = [], compliance_topics = [] }) =>
      [...topics, ...compliance_topics].includes(topic),
    );
    if (subscription?.include_fields === undefined) return subscription && payload;
    const fields = new Set(subscription.include_fields);
    const limited = Object.fromEntries(Object.entries(payload as object).filter(([field]) => fields.has(field)));
    const delivery = `${topic} ${exactJson(limited)}`;
    if (this.sent.has(delivery)) return undefined;
    this.sent.add(delivery);
    return limited;
  }
}

/** Checks the app file by the rules of the platform's command-line tool. @throws for the first broken rule */
function refuse({ webhooks: { subscriptions = [], privacy_compliance } = {} }: AppFile): void {
  const compliance = subscriptions.flatMap(({ compliance_topics = [] }) => compliance_topics);
  if (privacy_compliance !== undefined && compliance.length > 0)
    throw new Error("The privacy_compliance section can't be used beside compliance_topics");
  if (new Set(compliance).size < compliance.length)
    throw new Error("You can't have multiple subscriptions with the same compliance topic");
  const keys = subscriptions.flatMap(({ topics = [], uri, filter }) =>
    topics.map((topic) => `${topic} ${uri} ${filter}`),
  );
  if (new Set(keys).size < keys.length)
    throw new Error("Multiple subscriptions with the exact same topic, uri, and filter");
}
