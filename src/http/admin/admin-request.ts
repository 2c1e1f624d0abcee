import type { ComponentChildren, VNode } from "preact";
import type { Resolve } from "../../delivery/address.ts";
import type { Actor } from "../../domain/audit.ts";
import type { EgressAllow } from "../../domain/deliveries/endpoint.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { RecordWriter } from "../../mirror/record-writer.ts";
import type { Store } from "../../store/port/store.ts";
import type { BodyReader } from "../body.ts";
import type { RequestLimits } from "../request-limits.ts";

/** Services that the handlers of the settings page use. */
export interface AdminDependencies {
  store: Store;
  bodies: BodyReader;
  recordWriter: RecordWriter;
  now: () => number;
  /** Milliseconds of a clock that only goes forward. Time limits and rate limits use this clock. */
  steadyTime: () => number;
  random: (bytes: number) => Uint8Array;
  resolve: Resolve;
  allow: EgressAllow;
  publicUrl: string | null;
  /** Base URL for other programs: `publicUrl`, or the address at which `serve` listens. */
  address: () => string;
  keepDeliveredMs: number;
  /** Whether e-mails can be sent. */
  sendsMail: boolean;
  /** Limits how often each shop may post forms and view personal data. */
  actionLimits: RequestLimits;
  /** Wakes the sender of deliveries. */
  wake: () => void;
  log: Log;
}

/** The sections of the navigation, with the paths of their tabs below the root. A section opens with its first tab. */
export const SECTIONS = {
  Overview: ["/overview"],
  Deliveries: ["/deliveries", "/deliveries/workflows"],
  Webhooks: ["/webhooks", "/webhooks/topics", "/webhooks/secret"],
  "API keys": ["/keys"],
  Data: ["/data", "/data/browse", "/data/inbox", "/data/requests"],
  Storefront: ["/fields", "/style"],
  Settings: ["/plan", "/triggers", "/alerts", "/audit"],
} as const satisfies Record<string, readonly [AdminTab, ...AdminTab[]]>;

/** The names of the tabs. Each key is the path of a tab. */
export const TABS = {
  "/overview": "Overview",
  "/deliveries": "Webhooks",
  "/deliveries/workflows": "Workflows",
  "/webhooks": "Endpoint",
  "/webhooks/topics": "Topics",
  "/webhooks/secret": "Secret",
  "/keys": "API keys",
  "/data": "Summary",
  "/data/browse": "Browse",
  "/data/inbox": "Inbox",
  "/data/requests": "Requests",
  "/fields": "Custom fields",
  "/style": "Widget style",
  "/plan": "Plan",
  "/triggers": "Workflow triggers",
  "/alerts": "Alerts",
  "/audit": "Audit",
} as const;
/** The documentation of each tab: a page below `/docs`, or a heading of a page. */
export const GUIDES: Record<AdminTab, string> = {
  "/overview": "quick-start",
  "/deliveries": "replay",
  "/deliveries/workflows": "webhooks#workflow-triggers",
  "/webhooks": "webhooks#endpoint",
  "/webhooks/topics": "webhooks#topics",
  "/webhooks/secret": "webhooks#signature",
  "/keys": "api#authentication",
  "/data": "api#fields",
  "/data/browse": "api#one-row",
  "/data/inbox": "connecting#platform-webhooks",
  "/data/requests": "operating#privacy",
  "/fields": "fields",
  "/style": "storefront",
  "/plan": "operating#plans",
  "/triggers": "webhooks#workflow-triggers",
  "/alerts": "operating#alerts",
  "/audit": "operating#the-audit-list",
};
/** The tab that opens first. */
export const HOME = "/overview";
export type AdminTab = keyof typeof TABS;

/** A visitor's request. The shop is the visitor's shop: a request cannot name another shop. */
export interface AdminRequest {
  shop: Shop;
  actor: Actor;
  /** The value of `:id` in the path. */
  id: string;
  /** The parameters of the address. Anyone can have written them, so handlers must parse them before use. */
  query: URLSearchParams;
  /** The posted fields; empty for a GET. */
  form: URLSearchParams;
}

export interface AdminPage {
  title: string;
  tab: AdminTab;
  /** The parent page; set only if no tab leads to this page. */
  trail?: { to: string; name: string };
  /** Buttons and links beside the title. */
  actions?: ComponentChildren;
  /** Default 200; 422 for a refused form. */
  status?: number;
  content: ComponentChildren;
  /** The part of the content that the browser's script reloads every two seconds. */
  live?: VNode;
}

/** A new API key, with the base URL of the API. */
export interface NewKey {
  value: string;
  address: string;
}

/** A message that only the next page shows. Its `newKey` cannot be shown again; the value of `copy` can. */
export interface Notice {
  text: string;
  tone?: "warning";
  newKey?: NewKey;
  copy?: { name: string; value: string };
}

/** The answer to an accepted form: a redirect, so that a reload does not post the form again. */
export interface SeeOther {
  to: string;
  notices?: Notice[];
}

/** A document that a page shows in a frame. The document has its own Content-Security-Policy. */
export interface AdminFrame {
  frame: VNode;
}

/** A file that the browser saves. */
export interface AdminFile {
  file: { name: string; json: string };
}

export type Handler = (
  request: AdminRequest,
  dependencies: AdminDependencies,
) => Promise<AdminPage | AdminFrame | AdminFile | SeeOther>;
