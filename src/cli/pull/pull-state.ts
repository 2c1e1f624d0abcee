import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import type { CopyState } from "../../client/copy.ts";
import { codeOf, invalid, messageOf, SdsError } from "../../domain/error.ts";
import type { Resource } from "../../domain/resources.ts";
import { syncFolder } from "../../store/files/data-folder.ts";
import { draftPath } from "../../store/files/drafts.ts";

/** The server and the resource that a state belongs to. */
export interface PullSource {
  url: string;
  resource: Resource;
  /** The fingerprint of the API key. */
  key: string;
  /** Whether the rows have custom fields. */
  include?: "customFields";
}

interface PullState extends CopyState, PullSource {
  /** The keys of the custom fields that have a column in CSV, in the order of the columns. */
  fieldKeys?: string[];
  /** The largest number that `--sequence` has reserved. Printed rows have no larger number. */
  sequence?: number;
}

/** If the first run ended before it saved a position, the file contains only its source and `sequence`. */
type StateContent = PullState | (PullSource & { sequence: number; fieldKeys?: never; checkpoint?: never });

/** The file of `--state`. */
export interface StateFile {
  path: string;
  /** The position of the last run; undefined at the first run. */
  readonly state: PullState | undefined;
  /** The field keys that `save` writes. */
  fieldKeys: string[] | undefined;
  /** Replaces the file atomically: a crash leaves the old or the new file. @throws SdsError `failed` */
  save(state: CopyState): void;
  /** Returns a number larger than all earlier numbers, even those of killed runs. @throws SdsError `failed` */
  nextSequence(): number;
}

const LARGEST_BYTES = 64 * 1024;

/**
 * How many sequence numbers one write of the file reserves. A run begins at the time in microseconds, or after the last
 * reserved number if that number is larger. On this scale, 100,000 numbers are a tenth of a second.
 */
const RESERVED_NUMBERS = 100_000;

/**
 * Reads the state, and checks that it can be saved.
 * @param anew starts from the first row, and also accepts the state of another server
 * @param now milliseconds
 * @throws SdsError `invalid` if the file is not a state of this server and resource; `not_found` for a missing folder
 */
export function openStateFile(
  given: string,
  source: PullSource,
  { anew, random, now }: { anew: boolean; random: (bytes: number) => Uint8Array; now: number },
): StateFile {
  const path = pathFor(given);
  const found = readState(path);
  if (found !== undefined) requireSource(path, found, source, anew);
  const state = anew || found?.checkpoint === undefined ? undefined : found;
  let stored = found;
  let reserved = found?.sequence ?? 0;
  // If the file was lost, numbers still grow, because the time in microseconds is above the numbers of earlier runs.
  let last = Math.max(reserved, now * 1_000);

  function replace(next: StateContent): void {
    replaceFile(path, { version: 1, ...next }, random);
    stored = next;
  }

  return {
    path,
    state,
    fieldKeys: state?.fieldKeys,
    save({ checkpoint, cursor }) {
      const { fieldKeys } = this;
      const sequence = reserved === 0 ? {} : { sequence: reserved };
      replace({ ...source, ...(fieldKeys && { fieldKeys }), checkpoint, cursor, ...sequence });
    },
    nextSequence() {
      last += 1;
      if (last > reserved) {
        reserved = last + RESERVED_NUMBERS;
        replace({ ...(stored ?? source), sequence: reserved });
      }
      return last;
    },
  };
}

/** Follows symbolic links, so that saving does not replace the link. */
function pathFor(given: string): string {
  if (given.trim() === "" || given === "-") throw invalid("--state must name a file, for instance orders.state");
  const path = resolve(given);
  const folder = dirname(path);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (thrown) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(thrown))) throw new SdsError("not_found", `there is no folder ${folder}`);
    throw new SdsError("failed", `the folder ${folder} cannot be written: ${messageOf(thrown)}`, { cause: thrown });
  }
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function readState(path: string): StateContent | undefined {
  let text: string;
  try {
    const { size } = statSync(path);
    text = size > LARGEST_BYTES ? "" : readFileSync(path, "utf8");
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    throw invalid(`--state cannot be read: ${messageOf(thrown)}`, thrown);
  }
  const state = parseState(text);
  if (state !== undefined) return state;
  throw invalid(`${path} is not a state of sds pull: name another file for --state`);
}

function parseState(text: string): StateContent | undefined {
  let value: Partial<PullState & { version: number }> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || value.version !== 1) return undefined;
  const { include, fieldKeys = [], checkpoint, cursor, sequence } = value;
  const texts = [value.url, value.resource, value.key];
  const isPosition = typeof checkpoint === "string" && (cursor === null || typeof cursor === "string");
  const isSequence = sequence === undefined || Number.isSafeInteger(sequence);
  const isWhole = isPosition || (checkpoint === undefined && sequence !== undefined);
  const isInclude = include === undefined || include === "customFields";
  const areKeys = Array.isArray(fieldKeys) && fieldKeys.every((key) => typeof key === "string");
  const isState = texts.every((one) => typeof one === "string") && isWhole && isSequence && isInclude && areKeys;
  return isState ? (value as StateContent) : undefined;
}

function requireSource(path: string, found: StateContent, source: PullSource, anew: boolean): void {
  const { url, resource, include } = source;
  const another = "use another file for --state";
  if (found.resource !== resource)
    throw invalid(`${path} is the state of ${found.resource}, not of ${resource}: ${another}`);
  if (found.url !== url && !anew)
    throw invalid(
      `${path} is the state of ${found.url}, not of ${url}: ${another}, or change "url" in it if the server has moved`,
    );
  if (found.include !== include && !anew)
    throw invalid(
      `${path} is the state of a pull ${include === undefined ? "with" : "without"} --include customFields: ` +
        `${another}, or run with --anew, which prints all rows again`,
    );
}

function replaceFile(path: string, state: object, random: (bytes: number) => Uint8Array): void {
  const draft = draftPath(path, random);
  try {
    const file = openSync(draft, "wx", 0o600);
    try {
      writeSync(file, `${JSON.stringify(state, null, 2)}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(draft, path);
    syncFolder(dirname(path));
  } catch (thrown) {
    rmSync(draft, { force: true });
    throw new SdsError("failed", `${path} cannot be written: ${messageOf(thrown)}; the next run prints rows again`, {
      cause: thrown,
    });
  }
}
