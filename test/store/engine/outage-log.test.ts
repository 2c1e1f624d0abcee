import { expect, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import { createOutageLog } from "../../../src/store/engine/outage-log.ts";
import { failureFields, StoreError } from "../../../src/store/port/store-error.ts";

const LOST = failureFields(new StoreError("lost", new Error("Failed to connect")));

function outageLog() {
  const clock = { ms: 0 };
  const now = () => clock.ms;
  const lines: Record<string, unknown>[] = [];
  const write = (text: string) => {
    const { time: _, ...line } = JSON.parse(text) as Record<string, unknown>;
    lines.push(line);
  };
  return { clock, lines, log: createOutageLog(createLog("info", { write }, now), now) };
}

test("an outage is one line when it begins, one a minute, and one when it is over", () => {
  const { clock, lines, log } = outageLog();
  const [failed, error] = ["cannot process the inbox", "Failed to connect"];
  for (let second = 0; second < 130; second += 1) {
    log.error("cannot process the inbox", LOST);
    log.warn("cannot tell other nodes", LOST);
    clock.ms += 1_000;
  }
  expect(lines).toEqual([
    { level: "error", message: "the database cannot be used; sds tries again", failed, error },
    { level: "error", message: "the database still cannot be used", failed, error, seconds: 60, failures: 121 },
    { level: "error", message: "the database still cannot be used", failed, error, seconds: 120, failures: 241 },
  ]);
  expect(log.isOut).toBeTrue();
  // An operation that waited for the database can fail after the first answer. So the outage is not over yet.
  log.noteAnswer();
  clock.ms += 1_000;
  log.error("cannot process the inbox", LOST);
  clock.ms += 9_999;
  log.noteAnswer();
  expect([lines.length, log.isOut]).toEqual([3, true]);
  clock.ms += 1;
  log.noteAnswer();
  log.noteAnswer();
  expect(lines.slice(3)).toEqual([
    { level: "info", message: "the database can be used again", seconds: 141, failures: 261 },
  ]);
  expect(log.isOut).toBeFalse();
});

test("other lines are written unchanged; failures for lack of a free connection are hidden during an outage", () => {
  const { lines, log } = outageLog();
  const busy = failureFields(new StoreError("busy", new Error("all connections are in use")));
  log.warn("first", busy);
  log.error("second", failureFields(new Error("a defect")));
  log.error("third", LOST);
  log.warn("fourth", busy);
  log.warn("fifth", { reason: "something else" });
  log.info("sixth", LOST);
  expect(lines.map(({ message }) => message)).toEqual([
    "first",
    "second",
    "the database cannot be used; sds tries again",
    "fifth",
    "sixth",
  ]);
});

test("the log line of an outage has a failure's message only up to its semicolon", () => {
  const { lines, log } = outageLog();
  log.warn("cannot read the file; the next turn reads it again", LOST);
  expect(lines).toMatchObject([{ failed: "cannot read the file" }]);
});

test("an outage ends although requests still find no connection free", () => {
  const { clock, lines, log } = outageLog();
  log.error("cannot process the inbox", LOST);
  for (let second = 1; second <= 10; second += 1) {
    clock.ms += 1_000;
    log.warn("a request failed", failureFields(new StoreError("busy", new Error("all connections are in use"))));
  }
  log.noteAnswer();
  expect([log.isOut, lines.at(-1)]).toEqual([
    false,
    { level: "info", message: "the database can be used again", seconds: 10, failures: 1 },
  ]);
});
