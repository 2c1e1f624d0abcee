import type { ComponentChildren, VNode } from "preact";
import type { Resolve } from "../../delivery/address.ts";
import type { EgressAllow } from "../../domain/deliveries/endpoint.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { Store } from "../../store/port/store.ts";
import type { BodyReader } from "../body.ts";

/** What the handlers of the settings page use. */
export interface AdminDependencies {
  store: Store;
  bodies: BodyReader;
  now: () => number;
  /** Epoch milliseconds that nobody can set, for limits. */
  steadyTime: () => number;
  random: (bytes: number) => Uint8Array;
  resolve: Resolve;
  allow: EgressAllow;
  publicUrl: string | null;
  /** Tells the sender that something is due. */
  wake: () => void;
  log: Log;
}

/** The pages in the navigation, with their names there. */
export const SECTIONS = {
  "/admin/keys": "API keys",
  "/admin/webhooks": "Webhooks",
  "/admin/deliveries": "Delivery log",
  "/admin/triggers": "Workflow triggers",
  "/admin/plan": "Plan & mirror",
} as const;
export type Section = keyof typeof SECTIONS;

/** A request of somebody who is signed in. The shop comes from the session. A request cannot name another. */
export interface AdminRequest {
  shop: Shop;
  /** The token that every form must contain. */
  csrf: string;
  /** The part of the path at `:id`. */
  id: string;
  /** The fields that were posted; empty for a GET. */
  form: URLSearchParams;
}

/** A page to show. */
export interface Page {
  title: string;
  section: Section;
  /** 200 if it is left out; 422 for a form that was refused. */
  status?: number;
  content: ComponentChildren;
  /** The part of the content that the script asks for again every two seconds. */
  live?: VNode;
}

/**
 * A message that is shown once, at the top of the next page. A `secret` is never shown again; a `copy` is only offered
 * for copying.
 */
export interface Notice {
  text: string;
  tone?: "warning";
  secret?: { name: string; value: string };
  copy?: { name: string; value: string };
}

/** Where the browser goes after a form was accepted, so that a reload does not post the form again. */
export interface SeeOther {
  to: string;
  notices?: Notice[];
}

export type Handler = (request: AdminRequest, dependencies: AdminDependencies) => Promise<Page | SeeOther>;
