import api from "./api.md" with { type: "text" };
import changelog from "./changelog.md" with { type: "text" };
import client from "./client.md" with { type: "text" };
import connecting from "./connecting.md" with { type: "text" };
import copies from "./copies.md" with { type: "text" };
import operating from "./operating.md" with { type: "text" };
import quickStart from "./quick-start.md" with { type: "text" };
import receivers from "./receivers.md" with { type: "text" };
import records from "./records.md" with { type: "text" };
import replay from "./replay.md" with { type: "text" };
import scaling from "./scaling.md" with { type: "text" };
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

/** A section of a guide with a topic of its own, because many readers look for it. */
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
      {
        topic: "quick-start",
        name: "Quick start",
        summary: "from an address and a key to all rows, in TypeScript and Python",
        text: quickStart,
      },
    ],
  },
  {
    name: "Read data",
    entries: [
      { topic: "api", name: "The API", summary: "endpoints, fields, ids and answers", text: api },
      section("authentication", "Authentication", "the key, and how to rotate it", "api"),
      section("pagination", "Pagination", "pages, limits and cursors", "api"),
      section("filters", "Filters", "rows of a customer, of a contract, with a status", "api"),
      {
        topic: "copies",
        name: "Keeping a copy current",
        summary: "what changed since a checkpoint, with a complete program",
        text: copies,
      },
      {
        topic: "client",
        name: "The typed client",
        summary: "for TypeScript and JavaScript, also for webhooks",
        text: client,
      },
      section("errors", "Errors", "every status and code, and what to do", "api"),
      section("limits", "Limits", "rows, sizes and times", "api"),
    ],
  },
  {
    name: "Receive webhooks",
    entries: [
      {
        topic: "receivers",
        name: "A webhook receiver",
        summary: "a complete program, in two languages",
        text: receivers,
      },
      { topic: "webhooks", name: "Webhooks", summary: "topics, data, endpoint and workflow triggers", text: webhooks },
      section("verifying", "Verifying a signature", "in five languages", "webhooks", "signature"),
      { topic: "replay", name: "Retries and replay", summary: "when a receiver was down", text: replay },
    ],
  },
  {
    name: "Send data",
    entries: [{ topic: "records", name: "Records", summary: "the intake, the import and every field", text: records }],
  },
  {
    name: "Run it",
    entries: [
      { topic: "operating", name: "Operating", summary: "settings, commands, backup, privacy", text: operating },
      { topic: "connecting", name: "Connecting a shop", summary: "step by step", text: connecting },
      { topic: "scaling", name: "Several machines", summary: "PostgreSQL, nodes and failover", text: scaling },
    ],
  },
  {
    name: "Changes",
    entries: [
      { topic: "versioning", name: "Versions", summary: "what may change within v1", text: versioning },
      { topic: "changelog", name: "Changelog", summary: "what is new", text: changelog },
    ],
  },
];

function section(topic: string, name: string, summary: string, guide: string, anchor = topic): GuideSection {
  return { topic, name, summary, guide, anchor };
}

export function isGuide(entry: Guide | GuideSection): entry is Guide {
  return "text" in entry;
}
