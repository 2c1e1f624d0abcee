export type JsonObject = Record<string, unknown>;

/**
 * Parses JSON whose numbers may exceed 2^53, as the platform's ids do, where JSON.parse rounds them: a whole number beyond the safe range becomes
 * the string of its digits.
 * @returns undefined for what is no JSON object
 */
export function parseExact(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
      typeof value === "number" && !Number.isSafeInteger(value) && /^\d+$/.test(context?.source ?? "") ? context?.source : value,
    );
    return asObject(value);
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}
