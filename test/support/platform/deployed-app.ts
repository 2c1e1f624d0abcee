import { type Exact, exactJson } from "./exact-json.ts";

interface AppFile {
  webhooks?: { subscriptions?: { topics?: string[]; compliance_topics?: string[]; include_fields?: string[] }[] };
}

/** The webhook subscriptions of the app's deployed file. Before the first deploy, every webhook is sent whole. */
export class DeployedApp {
  /** The fields that the platform sends, by topic; null for all fields. */
  private subscriptions: Map<string, ReadonlySet<string> | null> | undefined;
  private readonly sent = new Set<string>();

  /** Replaces the whole configuration, as the platform does. @param text of `shopify.app.toml` */
  deploy(text: string): void {
    const { webhooks } = Bun.TOML.parse(text) as AppFile;
    this.subscriptions = new Map(
      (webhooks?.subscriptions ?? []).flatMap(({ topics = [], compliance_topics = [], include_fields }) =>
        [...topics, ...compliance_topics].map((topic) => [topic, include_fields ? new Set(include_fields) : null]),
      ),
    );
  }

  /**
   * The payload as the platform sends it; undefined if the platform does not send it. With `include_fields`, the
   * platform drops webhooks that do not differ from an earlier webhook of the topic.
   */
  payloadFor(topic: string, payload: Exact): Exact | undefined {
    if (this.subscriptions === undefined) return payload;
    const fields = this.subscriptions.get(topic);
    if (fields === undefined || fields === null) return fields === null ? payload : undefined;
    const limited = Object.fromEntries(Object.entries(payload as object).filter(([field]) => fields.has(field)));
    const delivery = `${topic} ${exactJson(limited)}`;
    if (this.sent.has(delivery)) return undefined;
    this.sent.add(delivery);
    return limited;
  }
}
