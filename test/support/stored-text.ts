import { expect } from "bun:test";

/** Whether to write the stored texts again, instead of comparing them (src/README.md, "Checks"). */
const isUpdate = process.env["SDS_UPDATE_TEXTS"] === "1";

/** Placeholders for values that differ between runs. */
const PLACEHOLDERS: [RegExp, string][] = [
  [/cad_pk_[0-9a-f]{48}/g, "<api key>"],
  [/cad_pk_[0-9a-f]{8}/g, "<fingerprint>"],
  [/\bkey_[a-z2-7]{24}/g, "<key id>"],
  [/\bwhd_[a-z2-7]{24}/g, "<delivery id>"],
  [/intake_[A-Za-z0-9+/]{43}=/g, "<intake secret>"],
  [/\bwhsec_[A-Za-z0-9+/=]+/g, "<webhook secret>"],
  [/sha256=[0-9a-f]{64}/g, "<signature>"],
  [/\b[0-9a-f]{64}\b/g, "<hex>"],
];

/** Replaces ids, keys and secrets in a text. @param more replacements that only this text needs */
export function withPlaceholders(text: string, more: readonly [RegExp, string][]): string {
  return [...PLACEHOLDERS, ...more].reduce((all, [pattern, name]) => all.replaceAll(pattern, name), text);
}

/** Expects a text to be the one of a file. SDS_UPDATE_TEXTS=1 writes the file again. */
export async function expectStored(path: string, text: string): Promise<void> {
  if (isUpdate) await Bun.write(path, text);
  else expect(text).toBe(await Bun.file(path).text());
}
