import { expect, test } from "bun:test";
import { createLog, masked, printable } from "../../src/lib/log.ts";
import { START } from "../support/app.ts";

function logTo(isTTY: boolean, level: "debug" | "warn" = "debug") {
  const lines: string[] = [];
  return { lines, log: createLog(level, { isTTY, write: (text) => lines.push(text) }, () => START) };
}

test("is one JSON object a line", () => {
  const { lines, log } = logTo(false);
  log.info("a\nb", { n: 1, none: null, missing: undefined });
  expect(lines).toEqual(['{"time":"2026-03-01T12:00:00.000Z","level":"info","message":"a\\nb","n":1,"none":null}\n']);
});

test("is readable on a terminal", () => {
  const { lines, log } = logTo(true);
  log.warn("slow", { ms: 5 });
  expect(lines).toEqual(["12:00:00.000 warn  slow ms=5\n"]);
});

test("cannot control the terminal", () => {
  const { lines, log } = logTo(true);
  log.warn("topic \u001b[2J\u009b \u202egpj", { stack: "a\n\tb" });
  expect(lines).toEqual(["12:00:00.000 warn  topic <U+001B>[2J<U+009B> <U+202E>gpj stack=a\n\tb\n"]);
});

test("an invisible character is shown as its code, in place of what it hides", () => {
  expect(printable("https://a\u200b.example/\u202egnp\u{e0041} \u00e9\t\n")).toBe(
    "https://a<U+200B>.example/<U+202E>gnp<U+E0041> \u00e9\t\n",
  );
});

test("leaves out messages below its level", () => {
  const { lines, log } = logTo(false, "warn");
  log.debug("a");
  log.info("b");
  log.error("c");
  expect(lines).toHaveLength(1);
});

test("never holds a key, secret, token or e-mail address", () => {
  const { lines, log } = logTo(false);
  log.error(`cad_pk_${"0a".repeat(24)} whsec_ab+/= intake_xy shpat_123 <bob@example.com>`, {
    field: "ada@example.com",
  });
  log.error('a "bob@example.com" b', { stack: "at x (/a/@scope/b.ts:1)" });
  expect(JSON.parse(lines[1] ?? "").message).toBe('a "[redacted]" b');
  expect(lines[0]).toContain(
    '"message":"[redacted] [redacted] [redacted] [redacted] <[redacted]>","field":"[redacted]"',
  );
});

test("a message hides keys behind their fingerprint, secrets and tokens", () => {
  const hex = "0123456789ab".repeat(4);
  const message = `no cad_pk_${hex}, whsec_${"A/+".repeat(14)}=, intake_${"B".repeat(43)}=, shpat_${hex}, cad_pk_01234567`;
  expect(masked(message)).toBe("no cad_pk_01234567[hidden], [hidden], [hidden], [hidden], cad_pk_01234567");
});

test("a message hides percent-encoded secrets, and keys that were typed with a space", () => {
  const hex = "0123456789ab".repeat(4);
  expect(masked(`cad%5Fpk%5F${hex} ${encodeURIComponent(`whsec_${"A/+".repeat(14)}=`)}&`)).toBe(
    "cad%5Fpk%5F01234567[hidden] [hidden]&",
  );
  expect(masked(`got 2: cad_pk_, ${hex}.`)).toBe("got 2: cad_pk_, [hidden].");
  expect(masked(`got 2: cad_pk_${hex.slice(0, 13)}, ${hex.slice(13)}.`)).toBe(
    "got 2: cad_pk_01234567[hidden], [hidden].",
  );
  const paths = `no data in /volumes/${hex}/_data: copy ${hex}${hex.slice(0, 16)}`;
  expect(masked(paths)).toBe(paths);
  expect(masked(`CAD_PK_${hex.toUpperCase()}`)).toBe("CAD_PK_01234567[hidden]");
});
