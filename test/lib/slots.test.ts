import { expect, test } from "bun:test";
import { createSlots } from "../../src/lib/slots.ts";

test("only so much work runs at once, and the rest follows in order, also after a failure", async () => {
  const slots = createSlots(2);
  const log: string[] = [];
  const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
  const all = gates.map(({ promise }, n) =>
    slots.run(async () => {
      log.push(`begin ${n}`);
      await promise;
      return n;
    }),
  );
  const settled = Promise.allSettled(all);
  await Promise.resolve();
  expect(log).toEqual(["begin 0", "begin 1"]);
  gates[1]?.reject(new Error("broken"));
  await expect(all[1]).rejects.toThrow("broken");
  gates[2]?.resolve();
  expect(await all[2]).toBe(2);
  for (const gate of gates) gate.resolve();
  expect((await settled).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  expect(log).toEqual(["begin 0", "begin 1", "begin 2", "begin 3"]);
});
