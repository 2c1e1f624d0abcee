import { expect, test } from "bun:test";
import { untilAborted } from "../../src/lib/waits.ts";

test("work that ends before the signal gives its result or its error", async () => {
  const { signal } = new AbortController();
  expect(await untilAborted(Promise.resolve("done"), signal)).toBe("done");
  await expect(untilAborted(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
});

test("a signal ends the waiting with its reason, whether it comes before or during the work", async () => {
  const before = AbortSignal.abort(new Error("stopped"));
  const never = new Promise(() => {});
  await expect(untilAborted(never, before)).rejects.toThrow("stopped");
  const during = new AbortController();
  const waiting = untilAborted(never, during.signal);
  during.abort(new Error("stopped later"));
  await expect(waiting).rejects.toThrow("stopped later");
});
