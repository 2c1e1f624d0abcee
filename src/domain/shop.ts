import { SdsError } from "./error.ts";

export const PLANS = ["pro", "free", "free+addon"] as const;
export type Plan = (typeof PLANS)[number];

export interface Shop {
  id: number;
  domain: string;
  plan: Plan;
  currency: string;
  /** Epoch milliseconds. */
  createdAt: number;
}

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const DOMAIN = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})+$`);

/** API access, webhooks and triggers come with Pro, and with Free through the add-on (service.md, fact 4). */
export function hasAccess(plan: Plan): boolean {
  return plan !== "free";
}

export function isDomain(text: string): boolean {
  return DOMAIN.test(text);
}

/** @throws SdsError `invalid` */
export function parseDomain(text: string): string {
  if (isDomain(text)) return text;
  throw new SdsError("invalid", `"${text}" is not a shop's domain: write it in lower case as the platform does, like alpha.myshopify.com`);
}

/** @throws SdsError `invalid` */
export function parsePlan(text: string): Plan {
  const plan = PLANS.find((known) => known === text);
  if (plan !== undefined) return plan;
  throw new SdsError("invalid", `"${text}" is not a plan: choose ${PLANS.join(", ")}`);
}

/** An ISO 4217 code. @throws SdsError `invalid` */
export function parseCurrency(text: string): string {
  if (Intl.supportedValuesOf("currency").includes(text)) return text;
  throw new SdsError("invalid", `"${text}" is not a currency: write its ISO 4217 code, like USD`);
}
