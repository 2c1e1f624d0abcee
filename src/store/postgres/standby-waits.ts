import { StoreError } from "../port/store-error.ts";
import type { Parameter } from "./queries.ts";

/** If a write gets no answer for this long, the server is asked whether the write waits for a standby. */
const SILENCE_MS = 1_000;

/** Selects the named connections that still exist. If a given-up connection waits for a standby, cancels the wait. */
const VISIT = `SELECT application_name AS name, wait_event IS NOT DISTINCT FROM 'SyncRep' AS "isWaiting",
    CASE WHEN wait_event = 'SyncRep' AND application_name = ANY($2::text[]) THEN pg_cancel_backend(pid) END
      AS "isCancelled"
  FROM pg_stat_activity WHERE application_name = ANY($1::text[])`;

/** A write that may wait for a standby. */
interface WatchedWrite {
  /** Call this at each answer of the server. */
  heard(): void;
  /** Whether the server said that the write waits for a standby. */
  isWaiting(): boolean;
  /** Ends the watch. Call this once. */
  end(): void;
}

export interface StandbyWaits {
  /** Whether the server said that a write waits for a standby. Then further writes would wait too. */
  areStuck(): boolean;
  /** @param name of the connection at the server; no other process uses it */
  watch(name: string): WatchedWrite;
  /** Cancels the waits of closed connections. Never rejects. */
  cancel(names: Iterable<string>): Promise<void>;
  /** Cancels the waits of all watched writes. Call this after the connections were closed. */
  close(): Promise<void>;
}

/** Returns the error of a write while commits wait for a standby. A write that was sent may still be committed. */
export function standbyMissing(): StoreError {
  const advice = "start a server of synchronous_standby_names, or change that setting";
  return new StoreError("lost", new Error(`commits wait for a synchronous standby: ${advice}`));
}

/**
 * Watches writes. While no synchronous standby answers, the server process of a commit waits for one. It waits even
 * after the client has closed the connection. Such processes would pile up until nobody could connect. Only a cancel
 * ends the wait. Then the primary has the commit, but perhaps no standby has it. So a write is cancelled only after its
 * caller has given up.
 * @param ask runs a statement on a connection of its own, in limited time
 * @param onStuck called when a write was found waiting
 */
export function createStandbyWaits(
  ask: <T>(text: string, parameters: readonly Parameter[]) => Promise<T[]>,
  onStuck: () => void,
): StandbyWaits {
  /** The time of the last answer to each write. */
  const watched = new Map<string, number>();
  const waiting = new Set<string>();
  const givenUp = new Set<string>();
  let visits: Promise<void> = Promise.resolve();
  let isPlanned = false;
  let later: Timer | undefined;

  /** Asks the server which silent or abandoned writes wait. A planned visit covers writes added before it begins. */
  function visit(): Promise<void> {
    if (isPlanned) return visits;
    isPlanned = true;
    visits = visits.then(visitNow);
    return visits;
  }

  async function visitNow(): Promise<void> {
    isPlanned = false;
    const left = [...givenUp];
    const all = [...silentNames(watched), ...left];
    if (all.length === 0) return;
    // If the query fails, it stays unknown which writes wait. A later visit asks again.
    const found = await ask<{ name: string; isWaiting: boolean }>(VISIT, [all, left]).catch(() => undefined);
    // On a busy server, a commit may begin to wait only after this visit. So `givenUp` keeps a connection until it no
    // longer exists.
    const existing = found && new Set(found.map(({ name }) => name));
    for (const name of left) if (existing?.has(name) === false) givenUp.delete(name);
    clearTimeout(later);
    if (givenUp.size > 0) later = setTimeout(visit, SILENCE_MS).unref();
    if (found === undefined) return;
    waiting.clear();
    for (const { name, isWaiting } of found) if (isWaiting && watched.has(name)) waiting.add(name);
    if (waiting.size > 0) onStuck();
  }

  function cancel(names: Iterable<string>): Promise<void> {
    for (const name of names) givenUp.add(name);
    return givenUp.size === 0 ? visits : visit();
  }

  return {
    areStuck: () => waiting.size > 0,
    cancel,
    close: () => cancel(watched.keys()),

    watch(name) {
      watched.set(name, performance.now());
      const look = () => visit().finally(() => watched.has(name) && timer.refresh());
      const timer = setTimeout(look, SILENCE_MS);
      return {
        heard() {
          // This may be called after `end`, when the connection of an abandoned transaction closes.
          if (!watched.has(name)) return;
          watched.set(name, performance.now());
          timer.refresh();
        },
        isWaiting: () => waiting.has(name),
        end() {
          clearTimeout(timer);
          watched.delete(name);
          waiting.delete(name);
        },
      };
    },
  };
}

/** Returns the names of the connections without an answer for `SILENCE_MS`. @param heardAt times of the last answers */
function silentNames(heardAt: ReadonlyMap<string, number>): string[] {
  const latest = performance.now() - SILENCE_MS;
  return [...heardAt].flatMap(([name, at]) => (at <= latest ? name : []));
}
