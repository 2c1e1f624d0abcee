import type { SQL } from "bun";
import { isConsequence } from "./errors.ts";

/** A parameter of a statement. The statement's text casts it: `$1::bigint`. */
export type Parameter = Scalar | Uint8Array | readonly Scalar[];
type Scalar = string | number | boolean | null;

/**
 * Runs statements. Each connection prepares each distinct text once. So pass values as parameters with a cast, and
 * never in the text. Select numbers as `::float8`, because the driver returns a bigint as a BigInt.
 */
export interface Queries {
  all<T>(text: string, parameters?: readonly Parameter[]): Promise<T[]>;
  /** @returns the first row */
  get<T>(text: string, parameters?: readonly Parameter[]): Promise<T | undefined>;
  /** @returns the number of changed rows */
  run(text: string, parameters?: readonly Parameter[]): Promise<number>;
}

/** Accepts statements whose results nobody needs. */
export interface Writes {
  run(text: string, parameters?: readonly Parameter[]): Promise<unknown>;
}

/** Rows of a result, with the properties that the driver adds. */
export type QueryResult = unknown[] & { count: number; command: string };

export type Ask = (text: string, parameters: readonly Parameter[]) => Promise<QueryResult>;

/** Sends a statement, without waiting for earlier answers on the connection. */
export async function send(sql: SQL, text: string, parameters: readonly Parameter[]): Promise<QueryResult> {
  if (parameters.length > 0) return (await sql.unsafe(text, parameters.map(sized))) as QueryResult;
  // `unsafe` without parameters would neither pipeline nor prepare the statement. The driver does both for a template.
  return (await sql(Object.defineProperty([text], "raw", { value: [text] }) as never)) as QueryResult;
}

/** Sends statements without parameters, separated by semicolons. */
export async function sendScript(sql: SQL, text: string): Promise<QueryResult> {
  return (await sql.unsafe(text).simple()) as QueryResult;
}

/** Converts integers to bigints. Otherwise a statement is prepared twice: for small numbers and for large numbers. */
function sized(parameter: Parameter): Parameter | bigint {
  return typeof parameter === "number" && Number.isSafeInteger(parameter) ? BigInt(parameter) : parameter;
}

/** Turns rows into an array for each column, for `unnest`. `rows` must not be empty. */
export function columnArrays<R>(rows: readonly R[], valuesOf: (row: R) => readonly Scalar[]): Scalar[][] {
  const values = rows.map(valuesOf);
  return (values[0] ?? []).map((_, column) => values.map((each) => each[column] ?? null));
}

export function queriesOf(ask: Ask): Queries {
  return {
    async all<T>(text: string, parameters: readonly Parameter[] = []) {
      return Array.from(await ask(text, parameters)) as T[];
    },
    async get<T>(text: string, parameters: readonly Parameter[] = []) {
      return (await ask(text, parameters))[0] as T | undefined;
    },
    async run(text, parameters = []) {
      return (await ask(text, parameters)).count;
    },
  };
}

/**
 * Waits for statements that were sent together. After a statement fails, the server refuses the later statements. This
 * throws the error of the statement that failed first.
 */
export async function pipeline<const T extends readonly Promise<unknown>[]>(
  statements: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const settled = await Promise.allSettled(statements);
  const failures = settled.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
  if (failures.length > 0) throw failures.find((thrown) => !isConsequence(thrown)) ?? failures[0];
  return settled.map((each) => (each as PromiseFulfilledResult<unknown>).value) as never;
}
