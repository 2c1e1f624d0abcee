import { expect, test } from "bun:test";
import { chownSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Patient } from "../../../src/cli/doctor/check.ts";
import { FILE_CHECKS } from "../../../src/cli/doctor/files.ts";
import { patientWith, runCheck, withCheckup } from "./patient.ts";

const diskOf = async (changed: Partial<Patient>) => runCheck(FILE_CHECKS, "disk", await patientWith(changed));

test("a disk with less than 256 MB is almost full", async () => {
  expect(await diskOf({ freeBytes: () => 255_999_999 })).toMatchObject({
    ok: false,
    detail: expect.stringContaining("the disk is almost full: 256.0 MB free"),
  });
  expect(await diskOf({ freeBytes: () => 256_000_000 })).toMatchObject({ ok: true });
  expect(await diskOf({ freeBytes: () => undefined })).toMatchObject({ ok: false });
});

test("a disk needs room for a copy of the database and its log", async () => {
  const patient = await patientWith({ freeBytes: () => 300_000_000 });
  const sized = (bytes: number, walBytes: number) =>
    withCheckup(patient, { figures: async () => ({ bytes, walBytes, lastBackupAt: null }) });
  expect(await runCheck(FILE_CHECKS, "disk", sized(299_000_000, 1_000_000))).toMatchObject({ ok: true });
  expect(await runCheck(FILE_CHECKS, "disk", sized(299_000_000, 1_000_001))).toMatchObject({
    ok: false,
    detail: expect.stringContaining("too little for a backup there"),
  });
});

test("serve needs a descriptor for each attempt that may run, and 256 more; its own limit counts if it runs", async () => {
  const check = async (limits: Partial<Patient>, concurrency: string) =>
    runCheck(
      FILE_CHECKS,
      "open files",
      await patientWith(limits, { SDS_DELIVERY_CONCURRENCY: concurrency }, async (store) => {
        await store.sessions.noteAddress("http://127.0.0.1:1");
      }),
    );
  expect(await check({ descriptorLimit: () => 1_024 }, "768")).toMatchObject({ ok: true });
  expect(await check({ descriptorLimit: () => 1_024 }, "769")).toMatchObject({
    ok: false,
    detail: "a program started here may open 1,024 files, and needs 1025",
  });
  expect(await check({ descriptorLimit: () => null }, "769")).toMatchObject({ ok: true });
});

test.skipIf(process.geteuid?.() !== 0)("root may use the data folder of another user", async () => {
  const patient = await patientWith({});
  const { data } = patient.config;
  for (const name of [".", ...readdirSync(data)]) chownSync(join(data, name), 65_534, 65_534);
  expect(await runCheck(FILE_CHECKS, "data folder", patient)).toMatchObject({ ok: true });
});
