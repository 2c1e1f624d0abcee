export type JsonObject = Record<string, unknown>;

/** Parses JSON. @returns undefined for text that is not a JSON object */
export function parseObject(text: string): JsonObject | undefined {
  return parse(text);
}

/**
 * Parses JSON that can have numbers above 2^53, such as the platform's ids. JSON.parse rounds such numbers. Here a
 * whole number outside the safe range becomes a string of its digits.
 * @returns undefined for text that is not a JSON object
 */
export function parseExact(text: string): JsonObject | undefined {
  return parse(text, (_key, value, { source } = {}) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^\d+$/.test(source ?? "") ? source : value,
  );
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

function parse(text: string, reviver?: Reviver): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text, reviver));
  } catch {
    return undefined;
  }
}

/** @returns undefined for anything except an object; an array is not an object here */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}
