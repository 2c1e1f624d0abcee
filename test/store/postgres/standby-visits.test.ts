import { expect, test } from "bun:test";
import { createStandbyWaits } from "../../../src/store/postgres/standby-waits.ts";
import { eventually } from "../../support/eventually.ts";

test("a wait that could not be cancelled, because the server did not answer, is cancelled later", async () => {
  const asked: unknown[] = [];
  const ask = async <T>(_text: string, [, left]: readonly unknown[]): Promise<T[]> => {
    asked.push(left);
    if (asked.length < 3) throw new Error("no answer");
    return [];
  };
  const waits = createStandbyWaits(ask, () => undefined);
  await waits.cancel(["sds node_1 3"]);
  expect(asked).toEqual([["sds node_1 3"]]);
  await eventually(() => asked.length === 3);
  expect(asked).toEqual(Array(3).fill(["sds node_1 3"]));
  // The third attempt succeeded, so nothing is left to cancel.
  await waits.cancel([]);
  expect(asked).toHaveLength(3);
});

test("a write that begins to wait after it was given up is cancelled too", async () => {
  const name = "sds node_1 3";
  const asked: unknown[] = [];
  const sessions = [[{ name, isWaiting: false }], [{ name, isWaiting: true }], []];
  const ask = async <T>(_text: string, [, left]: readonly unknown[]): Promise<T[]> => {
    asked.push(left);
    return (sessions[asked.length - 1] ?? []) as T[];
  };
  const waits = createStandbyWaits(ask, () => undefined);
  await waits.cancel([name]);
  await eventually(() => asked.length === 3);
  expect(asked).toEqual([[name], [name], [name]]);
  await waits.cancel([]);
  expect(asked).toHaveLength(3);
});
