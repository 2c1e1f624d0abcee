import api from "./api.md" with { type: "text" };
import changelog from "./changelog.md" with { type: "text" };
import client from "./client.md" with { type: "text" };
import connecting from "./connecting.md" with { type: "text" };
import copies from "./copies.md" with { type: "text" };
import fields from "./fields.md" with { type: "text" };
import operating from "./operating.md" with { type: "text" };
import quickStart from "./quick-start.md" with { type: "text" };
import receivers from "./receivers.md" with { type: "text" };
import records from "./records.md" with { type: "text" };
import replay from "./replay.md" with { type: "text" };
import scaling from "./scaling.md" with { type: "text" };
import storefront from "./storefront.md" with { type: "text" };
import versioning from "./versioning.md" with { type: "text" };
import webhooks from "./webhooks.md" with { type: "text" };

/** A page of documentation. `sds docs TOPIC` prints it, and `/docs/TOPIC` shows it. */
export interface Guide {
  topic: string;
  /** Its name in lists of pages. */
  name: string;
  /** The content in a few words. */
  summary: string;
  /** Markdown, without HTML. */
  text: string;
}

/** A section that has its own topic for `sds docs TOPIC`, because many readers look for this section. */
export interface GuideSection {
  topic: string;
  name: string;
  summary: string;
  guide: string;
  /** The heading's anchor. */
  anchor: string;
}

export interface GuideGroup {
  name: string;
  entries: readonly (Guide | GuideSection)[];
}

/** All pages, in the order in which they are listed. */
export const GUIDES: readonly GuideGroup[] = [
  {
    name: "Start",
    entries: [
      guide(
        "quick-start",
        "Quick start",
        "from an address and a key to all rows, in JavaScript and Python",
        quickStart,
      ),
    ],
  },
  {
    name: "Read data",
    entries: [
      guide("api", "The API", "endpoints, fields, ids and answers", api),
      section("authentication", "Authentication", "the key, and how to rotate it", "api"),
      section("pagination", "Pagination", "pages, limits and cursors", "api"),
      section("filters", "Filters", "rows of a customer, of a contract, with a status", "api"),
      guide("copies", "Keeping a copy current", "what changed since a checkpoint, with a complete program", copies),
      guide("client", "The typed client", "for TypeScript and JavaScript, also for webhooks", client),
      guide("fields", "Custom fields", "the shop's own data beside each subscription", fields),
      section("errors", "Errors", "every status and code, and what to do", "api"),
      section("limits", "Limits", "rows, sizes and times", "api"),
    ],
  },
  {
    name: "Receive webhooks",
    entries: [
      guide("receivers", "A webhook receiver", "a complete program, in two languages", receivers),
      guide("webhooks", "Webhooks", "topics, data, endpoint and workflow triggers", webhooks),
      section("verifying", "Verifying a signature", "in five languages", "webhooks", "signature"),
      guide("replay", "Retries and replay", "when a receiver was down", replay),
    ],
  },
  {
    name: "Send data",
    entries: [guide("records", "Records", "the intake, the import and every field", records)],
  },
  {
    name: "Storefront",
    entries: [
      guide("storefront", "The widget's style", "CSS of the merchant that cannot leave the widget", storefront),
    ],
  },
  {
    name: "Run it",
    entries: [
      guide("operating", "Operating", "settings, commands, backup, privacy", operating),
      guide("connecting", "Connecting a shop", "step by step", connecting),
      guide("scaling", "Several machines", "PostgreSQL, nodes and failover", scaling),
    ],
  },
  {
    name: "Changes",
    entries: [
      guide("versioning", "Versions", "what may change within v1", versioning),
      guide("changelog", "Changelog", "what is new", changelog),
    ],
  },
];

function guide(topic: string, name: string, summary: string, text: string): Guide {
  return { topic, name, summary, text };
}

function section(topic: string, name: string, summary: string, guide: string, anchor = topic): GuideSection {
  return { topic, name, summary, guide, anchor };
}

export function isGuide(entry: Guide | GuideSection): entry is Guide {
  return "text" in entry;
}
