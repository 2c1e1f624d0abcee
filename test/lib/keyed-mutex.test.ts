import { expect, test } from "bun:test";
import { createKeyedMutex } from "../../src/lib/keyed-mutex.ts";

test("work of one key runs in order, and work of another key does not wait", async () => {
  const mutex = createKeyedMutex();
  const log: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = mutex.run(["a"], async () => {
    await gate.promise;
    log.push("first");
  });
  const second = mutex.run(["a"], async () => log.push("second"));
  await mutex.run(["b"], async () => log.push("other"));
  expect(log).toEqual(["other"]);
  gate.resolve();
  await Promise.all([first, second]);
  expect(log).toEqual(["other", "first", "second"]);
});

test("work that begins while earlier work ends still waits", async () => {
  const mutex = createKeyedMutex();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const log: string[] = [];
  const first = mutex.run(["a"], () => gates[0]?.promise ?? Promise.resolve());
  const second = mutex.run(["a"], async () => {
    await gates[1]?.promise;
    log.push("second");
  });
  gates[0]?.resolve();
  await first;
  const third = mutex.run(["a"], async () => log.push("third"));
  gates[1]?.resolve();
  await Promise.all([second, third]);
  expect(log).toEqual(["second", "third"]);
});

test("failed work rejects for its caller, and the next work runs", async () => {
  const mutex = createKeyedMutex();
  const failed = mutex.run(["a"], () => Promise.reject(new Error("no")));
  const next = mutex.run(["a"], async () => "next");
  await expect(failed).rejects.toThrow("no");
  expect(await next).toBe("next");
});
