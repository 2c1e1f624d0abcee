import type { Config } from "../../config.ts";
import type { Resolve } from "../../delivery/address.ts";
import type { Connect } from "../../delivery/connector.ts";
import type { Awaitable } from "../../lib/waits.ts";
import type { Checkup, OpenedCheckup } from "../../store/port/checkup.ts";

/** The result of a check. A failure always has a remedy. */
export type Finding = { ok: true; detail: string } | { ok: false; detail: string; remedy: string };

/** The input of the checks, and the functions that they need. */
export interface Patient {
  config: Config;
  opened: OpenedCheckup;
  /** Epoch milliseconds. */
  now: () => number;
  fetch: typeof globalThis.fetch;
  resolve: Resolve;
  connect: Connect;
  /** Returns the free bytes on the disk of a folder; undefined if the folder does not exist. */
  freeBytes: (folder: string) => number | undefined;
  /** Returns a process's limit of open files; null if unknown. @param processId of `serve`; null for this process */
  descriptorLimit: (processId: number | null) => number | null;
  /** Searches the database for damage. The signal stops the search. @returns the damage, or undefined */
  findDamage: (signal: AbortSignal) => Promise<string | undefined>;
}

export interface Check {
  name: string;
  run(patient: Patient): Awaitable<Finding>;
}

/** A check that needs a database with the schema of this version. */
export interface DataCheck {
  name: string;
  run(checkup: Checkup, patient: Patient): Awaitable<Finding>;
}

export function passed(detail: string): Finding {
  return { ok: true, detail };
}

export function failed(detail: string, remedy: string): Finding {
  return { ok: false, detail, remedy };
}
