import type { ComponentChildren, VNode } from "preact";
import type { Resolve } from "../../delivery/address.ts";
import type { EgressAllow } from "../../domain/endpoint.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../log.ts";
import type { Store } from "../../store/store.ts";

/** What the settings page works with. */
export interface AdminDependencies {
  store: Store;
  now: () => number;
  random: (bytes: number) => Uint8Array;
  resolve: Resolve;
  allow: EgressAllow;
  publicUrl: string | null;
  /** Tells the sender that something is due. */
  wake: () => void;
  log: Log;
}

/** The pages in the navigation, by what stands there. */
export const SECTIONS = {
  "/admin/keys": "API keys",
  "/admin/webhooks": "Webhooks",
  "/admin/deliveries": "Delivery log",
  "/admin/triggers": "Workflow triggers",
  "/admin/plan": "Plan & mirror",
} as const;
export type Section = keyof typeof SECTIONS;

/** A request of somebody who is signed in. The shop is the session's: nothing in a request can name another. */
export interface AdminRequest {
  shop: Shop;
  /** What forms have to carry. */
  csrf: string;
  /** What stood in the path in the place of `:id`. */
  id: string;
  /** What was posted; empty for a GET. */
  form: URLSearchParams;
}

/** A page to show. */
export interface Page {
  title: string;
  section: Section;
  /** 200 unless it says otherwise; 422 for a form that was refused. */
  status?: number;
  content: ComponentChildren;
  /** The part of the content that the script asks for again and again. */
  live?: VNode;
}

/** What a visitor is told once, on top of the next page: `secret` is shown there and never again, `copy` is shown to be copied. */
export interface Notice {
  text: string;
  tone?: "warning";
  secret?: { name: string; value: string };
  copy?: { name: string; value: string };
}

/** Where to go after a form was taken, so that reloading does not post it again. */
export interface SeeOther {
  to: string;
  notices?: Notice[];
}

export type Handler = (visit: AdminRequest, parts: AdminDependencies) => Promise<Page | SeeOther>;
