import { isoUtc } from "../../lib/time.ts";
import { ENDPOINT_FAILING, type Trigger } from "../events/trigger.ts";
import { explainTrouble, REFUSED } from "../platform/connection-trouble.ts";

/**
 * Why a shop is alerted: the platform refuses its connection, its endpoint fails, or deliveries died. The most serious
 * cause comes first.
 */
export const ALERT_CAUSES = ["connection", "endpoint", "dead"] as const;
type AlertCause = (typeof ALERT_CAUSES)[number];

/** What fails in a shop. Times in epoch milliseconds. */
export interface Alert {
  cause: AlertCause;
  /** Time of the first failure since the last success. */
  since: number;
  /** Number of deliveries that are dead, or whose first attempt failed; always 1 for an alert about a connection. */
  failures: number;
  lastAt: number;
  /** Host of the endpoint; null for a connection and for workflow triggers. */
  host: string | null;
  /** A sentence without personal data; null for workflow triggers, because the platform's error may name a person. */
  error: string | null;
}

/**
 * An endpoint is failing if the first attempts of FAILING_ATTEMPTS deliveries have failed, and the failures have lasted
 * FAILING_MS.
 */
export const FAILING_ATTEMPTS = 5;
export const FAILING_MS = 3_600_000;

interface AlertText {
  /** The beginning of a sentence. "since" and a time complete the sentence. */
  what: string;
  error: string;
  /** What to do, and in which section of the settings page. */
  advice: string;
  path: "/deliveries" | "/deliveries/workflows" | "/data";
}

/** Describes an alert for the merchant. */
export function alertTexts({ cause, host, error }: Alert): AlertText {
  if (cause === "connection") {
    // The stored error is a text for operators. `explainTrouble` gives the text for merchants.
    const trouble = explainTrouble(error ?? "");
    return {
      what: "Shopify has refused the app's connection",
      error: trouble === REFUSED ? "" : trouble.what,
      advice: trouble.todo,
      path: "/data",
    };
  }
  if (cause === "endpoint")
    return {
      what: `Your endpoint ${host} has failed`,
      error: error ?? "",
      advice: "Repair it before more deliveries die.",
      path: "/deliveries",
    };
  if (host === null)
    return {
      what: "Workflows have not started",
      error: "",
      advice: "Read the errors of their deliveries, then resend.",
      path: "/deliveries/workflows",
    };
  return {
    what: `Deliveries to your endpoint ${host} have been dead`,
    error: error ?? "",
    advice: "Repair the endpoint, then resend.",
    path: "/deliveries",
  };
}

/** Returns the whole text of an alert, with its time in UTC. */
export function alertText(alert: Alert): string {
  const { what, error, advice } = alertTexts(alert);
  return [`${what} since ${minuteUtc(alert.since)}.`, error, advice].filter(Boolean).join(" ");
}

/** Returns a time like "2026-11-23 14:02 UTC". */
function minuteUtc(ms: number): string {
  const iso = isoUtc(ms);
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;
}

/** Describes an alert for the operator. @param shop the shop's domain */
export function operatorText(shop: string, isOver: boolean, { cause, since, host, error }: Alert): string {
  const what = {
    connection: ["the platform refuses the connection", "the platform accepts the connection again"],
    endpoint: [`the endpoint ${host} fails`, `the endpoint ${host} answers again`],
    dead:
      host === null
        ? ["workflow triggers are dead", "no workflow trigger is dead now"]
        : [`webhooks to ${host} are dead`, "no webhook is dead now"],
  }[cause][isOver ? 1 : 0];
  if (isOver) return `${shop}: ${what}`;
  return `${shop}: ${what}, since ${minuteUtc(since)}${error === null ? "" : `: ${error}`}`;
}

/**
 * Returns the workflow trigger of an alert; undefined if the alert is not about the endpoint.
 * @param link to the deliveries
 */
export function failingTrigger({ cause, since, host, error }: Alert, link: string): Trigger | undefined {
  // If triggers are dead, a trigger about them could die too. If the connection is refused, no trigger can be sent.
  if (cause === "connection" || host === null) return undefined;
  const fields = { Host: host, Error: error ?? "", Since: isoUtc(since), Link: link };
  return { handle: ENDPOINT_FAILING, customer: null, fields };
}

/** Tells the merchant that an alert is over. */
export function overText({ cause, host }: Alert): string {
  if (cause === "connection") return "Shopify accepts the app's connection again.";
  if (cause === "endpoint") return `Your endpoint ${host} answers again.`;
  return host === null
    ? "Workflows start again."
    : `Deliveries to your endpoint ${host} arrive again, and none is dead.`;
}
