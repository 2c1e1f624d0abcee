import { expect, test } from "bun:test";
import {
  fingerprintOf,
  generateKey,
  hashKey,
  isKey,
  keyFromHeader,
  parseKey,
  parseLabel,
} from "../../src/domain/key.ts";

const key = `cad_pk_${"0123456789abcdef".repeat(3)}`;

test("a key is cad_pk_ and 48 hexadecimal characters", () => {
  const made = generateKey((n) => crypto.getRandomValues(new Uint8Array(n)));
  expect(made).toMatch(/^cad_pk_[0-9a-f]{48}$/);
  expect(isKey(made)).toBe(true);
  expect(parseKey(made)).toBe(made);
});

test.each(["", key.toUpperCase(), `${key}\n`])("%j is not a key of an older system", (text) => {
  expect(() => parseKey(text)).toThrow("the key must be cad_pk_ and 48 lower-case hexadecimal digits");
});

test("its SHA-256 and its first characters are stored", () => {
  expect(hashKey("abc").toHex()).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect(fingerprintOf(key)).toBe("cad_pk_01234567");
});

test.each([`Bearer ${key}`, `bearer ${key}`, `BEARER ${key}`])("%s holds the key", (header) => {
  expect(keyFromHeader(header)).toBe(key);
});

test.each([
  null,
  "",
  key,
  "Bearer",
  `Bearer${key}`,
  `Bearer  ${key}`,
  `Bearer\t${key}`,
  ` Bearer ${key}`,
  `Bearer ${key} `,
  `Bearer ${key}0`,
  `Bearer ${key.slice(0, -1)}`,
  `Bearer ${key.toUpperCase()}`,
  `Bearer ${key}, Bearer ${key}`,
  `Basic ${key}`,
  `Bearer ${key}\n`,
])("%p holds no key", (header) => {
  expect(keyFromHeader(header)).toBeUndefined();
});

test.each(["\u0007", "\u200b", "\u2028", "\u2029", "\u{e0041}"])("a label with %j is refused", (character) => {
  expect(() => parseLabel(`a${character}b`)).toThrow("no control or invisible characters");
});
