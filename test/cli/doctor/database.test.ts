import { expect, jest, test } from "bun:test";
import { DATA_CHECKS } from "../../../src/cli/doctor/database.ts";
import { START } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { patientWith, runDataCheck } from "./patient.ts";

const DAY = 86_400_000;

test("no backup for two days is a fault, since the last backup, or else since the first shop", async () => {
  const backup = async (days: number, env = {}) =>
    runDataCheck(DATA_CHECKS, "backup", await patientWith({ now: () => START + days * DAY }, env));
  expect(await backup(2)).toEqual({ ok: true, detail: "sds knows no backup of this database" });
  expect(await backup(2.1)).toMatchObject({ ok: false, remedy: expect.stringContaining("sds backup FILE") });
  const server = { SDS_DATABASE_URL: "postgres://sds@127.0.0.1/sds" };
  expect(await backup(9, server)).toMatchObject({ ok: true, detail: expect.stringContaining("pg_dump") });
});

test("a search for damage that takes too long finds none, and says so", async () => {
  const damage = async (findDamage: (signal: AbortSignal) => Promise<string | undefined>) =>
    runDataCheck(DATA_CHECKS, "damage", await patientWith({ findDamage }));
  expect(await damage(async () => "page 3")).toMatchObject({ ok: false, detail: "the database is damaged: page 3" });
  const endless = async (signal: AbortSignal) => {
    jest.advanceTimersByTime(8_000);
    signal.throwIfAborted();
    return "no abort";
  };
  jest.useFakeTimers();
  afterTest(() => jest.useRealTimers());
  expect(await damage(endless)).toEqual({
    ok: true,
    detail: "none found in 8 seconds; `sds backup` searches the whole database",
  });
});

test("an error of the search for damage is not hidden", async () => {
  const patient = await patientWith({ findDamage: () => Promise.reject(new Error("no memory")) });
  await expect(runDataCheck(DATA_CHECKS, "damage", patient)).rejects.toThrow("no memory");
});
