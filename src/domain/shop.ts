import { isLike } from "../lib/similar.ts";
import { invalid, SdsError } from "./error.ts";
import type { TriggerHandle } from "./events/trigger.ts";
import type { RetryPlan } from "./retry-plan.ts";

export const PLANS = ["pro", "free", "free+addon"] as const;
export type Plan = (typeof PLANS)[number];

/** A shop's domain, and its number in this database. The number is never reused. */
export interface ShopRef {
  id: number;
  domain: string;
}

/** A shop, and the domain that its internal ids are derived from. */
export interface MirroredShop extends ShopRef {
  /** The domain with which the shop was added. It stays when the shop is renamed. */
  firstDomain: string;
}

export interface Shop extends MirroredShop {
  plan: Plan;
  currency: string;
  /** Epoch milliseconds. */
  createdAt: number;
}

/**
 * Number of partitions that the shops are divided into. A lease is for a partition, not for a shop, so many shops need
 * few leases. The number must never change. Otherwise nodes of two versions would put a shop into different partitions.
 */
export const PARTITIONS = 256;

export function partitionOf(shopId: number): number {
  return shopId % PARTITIONS;
}

/** Topic of the platform's request to remove a shop. The request stays in the inbox until all other data is gone. */
export const REMOVAL_TOPIC = "shop/redact";

/** Makes the error for a shop that cannot be added or connected, because it is being removed. */
export function beingRemoved(domain: string): SdsError {
  return new SdsError(
    "conflict",
    `the shop ${domain} is being removed: wait until it is gone; \`sds shop remove ${domain} --yes\` finishes it`,
  );
}

/** A discount with this title is store credit, unless the shop uses another title. */
export const DEFAULT_CREDIT_TITLE = "Loyalty credit";

export interface ShopSettings {
  /** Whether the operator chose the plan. Otherwise the shop's subscription to the app decides. */
  planFixed: boolean;
  retryDays: RetryPlan;
  creditTitle: string;
  triggers: TriggerHandle[];
}

/** Maximum size of a storefront widget's stylesheet. */
export const MAX_STYLE_BYTES = 65_536;

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const DOMAIN = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})+$`);

/** Whether the plan includes API access, webhooks and triggers: Pro does, and Free with the add-on. */
export function hasAccess(plan: Plan): boolean {
  return plan !== "free";
}

export function isDomain(text: string): boolean {
  return DOMAIN.test(text);
}

/** @throws SdsError `invalid` */
export function parseDomain(text: string): string {
  if (isDomain(text)) return text;
  throw invalid(
    `"${text}" is not a shop's domain: write it in lower case as the platform does, like alpha.myshopify.com`,
  );
}

/** The platform gives each shop a name below this domain. */
const PLATFORM_DOMAIN = "myshopify.com";

/**
 * Checks the domain of a shop to add. `parseDomain` also accepts IP addresses, because an earlier version added shops
 * by IP address.
 * @throws SdsError `invalid` also for an IP address, or a misspelt domain of the platform
 */
export function parseNewDomain(text: string): string {
  // An IP address ends with a number. The last label of a host name is never a number.
  if (/\.[0-9]+$/.test(text))
    throw invalid(`"${text}" is not a shop's domain: it must be a host name, like alpha.myshopify.com`);
  const domain = parseDomain(text);
  const [name = ""] = domain.split(".");
  const meant = `${name}.${PLATFORM_DOMAIN}`;
  if (domain === meant || !isLike(domain.slice(name.length + 1), PLATFORM_DOMAIN)) return domain;
  throw invalid(`"${text}" is not a shop's domain: did you mean ${meant}?`);
}

/** @throws SdsError `invalid` */
export function parsePlan(text: string): Plan {
  const plan = PLANS.find((known) => known === text);
  if (plan !== undefined) return plan;
  throw invalid(`"${text}" is not a plan: choose ${PLANS.join(", ")}`);
}

/** Checks an ISO 4217 code. @throws SdsError `invalid` */
export function parseCurrency(text: string): string {
  if (Intl.supportedValuesOf("currency").includes(text)) return text;
  throw invalid(`"${text}" is not a currency: write its ISO 4217 code, like USD`);
}

const MAX_CREDIT_TITLE = 255;

/** @throws SdsError `invalid` */
export function parseCreditTitle(text: string): string {
  if (text.trim() !== "" && text.length <= MAX_CREDIT_TITLE && text.isWellFormed() && !text.includes("\0")) return text;
  throw invalid(`the title of the store credit must have 1 to ${MAX_CREDIT_TITLE} characters`);
}
