import { counted } from "../../lib/text.ts";
import { isoUtc, parseDuration } from "../../lib/time.ts";
import { invalid } from "../error.ts";
import type { Event } from "../events/event.ts";
import type { Envelope } from "../events/event-schemas.ts";

/**
 * The states of a delivery (docs/webhooks.md, "Retries"):
 *
 *     pending ── success ──────────────► delivered
 *        │                                  ▲  │
 *        └─ failure ─► retrying ─ success ──┘  │ by hand
 *                       │   ▲                  ▼
 *                       │   └── failure ◄── pending, a new round
 *                       └─ last failure ─► dead ─ by hand ─► pending, a new round
 */
export const DELIVERY_STATUSES = ["pending", "retrying", "delivered", "dead"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];
export const DELIVERY_KINDS = ["webhook", "trigger"] as const;
export type DeliveryKind = (typeof DELIVERY_KINDS)[number];

/** Outcomes by which attempts are counted. `retried`: the attempt failed, and another attempt was planned. */
export type CountedOutcome = "delivered" | "retried" | "dead";

/** Returns the outcome of an attempt. @param status of the delivery after the attempt */
export function outcomeOf(status: DeliveryStatus): CountedOutcome {
  return status === "delivered" || status === "dead" ? status : "retried";
}

/** Returns a sentence that says how long the log keeps deliveries. */
export function retentionText(keepDeliveredMs: number): string {
  const days = Math.floor(keepDeliveredMs / 86_400_000);
  return `Delivered ones are removed after ${counted(days, "day", "days")}, dead ones are kept.`;
}

/** The state of a delivery. Times in epoch milliseconds. */
export interface DeliveryState {
  status: DeliveryStatus;
  /** Attempts of all rounds. */
  attempts: number;
  /** Attempts of this round. A round begins when a delivery is queued, or an ended delivery is retried by hand. */
  round: number;
  /** When the next attempt is made; null if no attempt is planned. */
  nextAttemptAt: number | null;
}

/** The outcome of an attempt; `error` is null for a success. */
export interface Outcome {
  statusCode: number | null;
  error: string | null;
  /** The URL of the attempt; absent for triggers, and if the shop has no endpoint. */
  url?: string;
  /** The stored part of the answer's body, see `keptAnswer`; absent if the answer is incomplete. */
  answer?: string;
}

/** Maximum number of bytes of the answer's body that an attempt stores. */
export const KEPT_ANSWER_BYTES = 1024;

/** How fast an endpoint answers. A quick endpoint gets more slots than a slow endpoint. */
export type Pace = "quick" | "slow";

/** Whether the delivery becomes dead if the next attempt fails. @param round attempts in this round so far */
export function isLastAttempt(round: number, waits: readonly number[]): boolean {
  return round >= waits.length;
}

/**
 * Returns the state after an attempt.
 * @param startedAt start of the attempt. The wait for the next attempt begins here, so a slow failure does not delay
 *   the next attempt.
 * @param waits milliseconds after each attempt of a round, except the last attempt
 */
export function afterAttempt(
  state: Pick<DeliveryState, "attempts" | "round">,
  { error }: Outcome,
  startedAt: number,
  waits: readonly number[],
): DeliveryState {
  const attempts = state.attempts + 1;
  const round = state.round + 1;
  if (error === null) return { status: "delivered", attempts, round, nextAttemptAt: null };
  const wait = waits[round - 1];
  if (wait === undefined) return { status: "dead", attempts, round, nextAttemptAt: null };
  return { status: "retrying", attempts, round, nextAttemptAt: startedAt + wait };
}

/** Returns the state after a retry by hand. An ended delivery begins a new round. A planned attempt is made now. */
export function afterRetryByHand(state: DeliveryState, now: number): DeliveryState {
  const ended = state.status === "dead" || state.status === "delivered";
  return ended ? { ...state, status: "pending", round: 0, nextAttemptAt: now } : { ...state, nextAttemptAt: now };
}

/** Builds the body of a webhook. Every attempt sends these bytes (docs/webhooks.md, "Body"). */
export function envelope(id: string, { topic, data }: Event, now: number, shop: string): string {
  return JSON.stringify({ id, topic, created_at: isoUtc(now), shop, data } satisfies Envelope);
}

/**
 * Returns the beginning of an answer's body as text, at most 1,024 bytes of UTF-8. Invalid UTF-8 becomes U+FFFD, and so
 * does U+0000, which PostgreSQL cannot store. A character that the limit would cut is left out.
 */
export function keptAnswer(body: Uint8Array): string {
  const isCut = body.length >= KEPT_ANSWER_BYTES;
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const text = decoder.decode(body.subarray(0, KEPT_ANSWER_BYTES), { stream: isCut }).replaceAll("\0", "\uFFFD");
  // Each invalid byte became U+FFFD, which takes three bytes. So the text can exceed the limit again.
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(KEPT_ANSWER_BYTES));
  return text.slice(0, read);
}

export function httpError(status: number): string {
  return `The endpoint responded with HTTP ${status}.`;
}

/** @param timeout milliseconds */
export function timeoutError(timeout: number): string {
  const seconds = timeout / 1000;
  return `The endpoint did not answer within ${seconds} ${seconds === 1 ? "second" : "seconds"}.`;
}

export function connectError(reason: string): string {
  return `Could not connect to the endpoint: ${reason}.`;
}

export function addressError(reason: string): string {
  return `The endpoint's address is not allowed: ${reason}.`;
}

const MIN_OVERLAP_MS = 1_000;
const MAX_OVERLAP_MS = 30 * 86_400_000;

/** A shop's newest signing secret. */
export interface NewestSecret {
  /** null without a secret. The previous version is `version` - 1. */
  version: number | null;
  /** Until this time, in epoch milliseconds, the previous version signs too; null without an overlap. */
  overlapEndsAt: number | null;
}

/** Returns the versions that sign `webhook-signature` now, newest first (docs/webhooks.md, "Rotation"). */
export function signingVersions({ version, overlapEndsAt }: NewestSecret, now: number): number[] {
  if (version === null) return [];
  return overlapEndsAt !== null && now < overlapEndsAt ? [version, version - 1] : [version];
}

/** Reads an overlap like `24h`. @returns milliseconds @throws SdsError `invalid` */
export function parseOverlap(text: string): number {
  const overlapMs = parseDuration(text);
  if (overlapMs !== undefined && overlapMs >= MIN_OVERLAP_MS && overlapMs <= MAX_OVERLAP_MS) return overlapMs;
  throw invalid(`the overlap is "${text}": it must be a duration from 1s to 30d, like 24h`);
}
