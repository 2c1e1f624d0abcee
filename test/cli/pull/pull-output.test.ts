import { expect, test } from "bun:test";
import { createPullOutput } from "../../../src/cli/pull/pull-output.ts";

const state = (n: number) => ({ checkpoint: `c${n}`, cursor: null });

/** Makes an output that notes its steps. `fails` makes writing fail. */
function noted(header = "") {
  const steps: string[] = [];
  const clock = { ms: 0, fails: false };
  const output = createPullOutput(
    { header, textOf: ({ id }) => `${id};` },
    { save: ({ checkpoint }) => steps.push(`save ${checkpoint}`) },
    {
      write: async (text) => {
        if (clock.fails) throw new Error("cannot write");
        steps.push(`write ${text}`);
      },
      sync: () => steps.push("sync"),
    },
    () => clock.ms,
  );
  return { steps, clock, output };
}

test("the state is saved after the rows before it are written and synced", async () => {
  const { steps, output } = noted("header;");
  await output.begin();
  await output.write([{ id: "a" }, { id: "b" }], state(1));
  output.end();
  expect(steps).toEqual(["write header;", "write a;b;", "sync", "save c1"]);
});

test("the state is saved once a second, and at the end if it changed", async () => {
  const { steps, clock, output } = noted();
  await output.write([{ id: "a" }], state(1));
  clock.ms = 1_000;
  await output.write([{ id: "b" }], state(2));
  clock.ms = 1_500;
  await output.write([{ id: "c" }], state(3));
  output.end();
  output.end();
  expect(steps).toEqual(["write a;", "write b;", "sync", "save c2", "write c;", "sync", "save c3"]);
});

test("after a failed write no state is saved, because the reader may not have read the rows before", async () => {
  const { steps, clock, output } = noted();
  await output.write([{ id: "a" }], state(1));
  clock.fails = true;
  await expect(output.write([{ id: "b" }], state(2))).rejects.toThrow("cannot write");
  output.end();
  expect(steps).toEqual(["write a;"]);
});
