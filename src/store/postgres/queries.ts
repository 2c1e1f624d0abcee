import type { SQL } from "bun";
import { isConsequence } from "./errors.ts";

/** What a statement can be given. Its text casts each one: `$1::bigint`. */
export type Parameter = string | number | boolean | null | Uint8Array | readonly (string | number | boolean | null)[];

/**
 * Statements. Each text is prepared once on each connection, so values are always parameters with a cast, never part of
 * the text. Numbers are read as `::float8`, because a bigint comes as text.
 */
export interface Queries {
  all<T>(text: string, parameters?: readonly Parameter[]): Promise<T[]>;
  /** The first row. */
  get<T>(text: string, parameters?: readonly Parameter[]): Promise<T | undefined>;
  /** @returns how many rows it changed */
  run(text: string, parameters?: readonly Parameter[]): Promise<number>;
}

/** Rows, and what the driver adds to the array. */
export type Answer = unknown[] & { count: number; command: string };

export type Ask = (text: string, parameters: readonly Parameter[]) => Promise<Answer>;

/** Sends a statement. It does not wait for the answers to those before it on the same connection. */
export async function send(sql: SQL, text: string, parameters: readonly Parameter[]): Promise<Answer> {
  if (parameters.length > 0) return (await sql.unsafe(text, parameters.map(sized))) as Answer;
  // The driver neither prepares `unsafe` without parameters nor sends it ahead, but it does so with a template.
  return (await sql(Object.defineProperty([text], "raw", { value: [text] }) as never)) as Answer;
}

/** Sends any number of statements without parameters, with semicolons between them. */
export async function sendScript(sql: SQL, text: string): Promise<Answer> {
  return (await sql.unsafe(text).simple()) as Answer;
}

/** The driver sends small and large numbers with different types, and the server would prepare each text for both. */
function sized(parameter: Parameter): Parameter | bigint {
  return typeof parameter === "number" && Number.isSafeInteger(parameter) ? BigInt(parameter) : parameter;
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
 * Statements that are sent together, without waiting for each answer. After the first one that fails, the server
 * refuses the others; this throws why the first one failed.
 */
export async function together<const T extends readonly Promise<unknown>[]>(
  statements: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const settled = await Promise.allSettled(statements);
  const failures = settled.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
  if (failures.length > 0) throw failures.find((thrown) => !isConsequence(thrown)) ?? failures[0];
  return settled.map((each) => (each as PromiseFulfilledResult<unknown>).value) as never;
}
