import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStateFile, type PullSource } from "../../../src/cli/pull/pull-state.ts";
import { temporaryFolder } from "../../support/app.ts";

const SOURCE: PullSource = { url: "https://sds.example.com", resource: "orders", key: "k" };
const NOW = Date.parse("2026-01-31T00:00:00Z");

/** Makes a folder for a state. Each call of `open` acts as a run of `sds pull` that opens the state. */
function runs() {
  const path = join(temporaryFolder(), "orders.state");
  const open = (now: number, anew = false) =>
    openStateFile(path, SOURCE, { anew, now, random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)) });
  return { path, open, stored: () => JSON.parse(readFileSync(path, "utf8")) };
}

test("numbers begin at the time, and grow after a killed run and with a clock that was set back", () => {
  const { open, stored } = runs();
  const first = open(NOW);
  expect(first.nextSequence()).toBe(NOW * 1_000 + 1);
  expect(first.nextSequence()).toBe(NOW * 1_000 + 2);
  // The first run was killed before it saved a position.
  expect(stored()).not.toContainKey("checkpoint");
  const second = open(NOW - 86_400_000);
  expect(second.state).toBeUndefined();
  const number = second.nextSequence();
  expect(number).toBeGreaterThan(NOW * 1_000 + 2);
  second.save({ checkpoint: "c1", cursor: null });
  const third = open(NOW - 86_400_000);
  expect(third.state).toMatchObject({ checkpoint: "c1", cursor: null });
  expect(third.nextSequence()).toBeGreaterThan(number);
  // The position stays when numbers are reserved.
  expect(stored()).toMatchObject({ checkpoint: "c1", cursor: null });
  const anew = open(NOW - 86_400_000, true);
  expect(anew.state).toBeUndefined();
  expect(anew.nextSequence()).toBeGreaterThan(stored().sequence - 100_001);
  expect(open(NOW + 86_400_000).nextSequence()).toBe((NOW + 86_400_000) * 1_000 + 1);
});

test("numbers never pass what the file has reserved", () => {
  const { open, stored } = runs();
  const state = open(NOW);
  for (let n = 0; n < 1_000_003; n++) state.nextSequence();
  expect(stored().sequence).toBeGreaterThan(NOW * 1_000 + 1_000_003);
});

test("a state without a position and without numbers is refused", () => {
  const { path, open } = runs();
  for (const more of [{}, { sequence: 0.5 }, { sequence: "1" }, { sequence: 1, checkpoint: 1 }]) {
    writeFileSync(path, JSON.stringify({ version: 1, ...SOURCE, ...more }));
    expect(() => open(NOW)).toThrow("is not a state of sds pull");
  }
});
