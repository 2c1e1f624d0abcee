import { join } from "node:path";
import type { Check, DataCheck, Finding, Patient } from "../../../src/cli/doctor/check.ts";
import { readConfig } from "../../../src/config.ts";
import type { Awaitable } from "../../../src/lib/waits.ts";
import { openCheckup } from "../../../src/store/open-store.ts";
import type { Checkup } from "../../../src/store/port/checkup.ts";
import type { Store } from "../../../src/store/port/store.ts";
import { START, temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { layEmptyDatabase } from "../../support/empty-database.ts";
import { openStoreIn } from "../../support/open-store.ts";

/** Makes a healthy data folder with one shop, which was added at START. Returns the input of the doctor's checks. */
export async function patientWith(
  changed: Partial<Patient> = {},
  env: Record<string, string> = {},
  fill: (store: Store) => Promise<void> = async () => {},
): Promise<Patient> {
  const data = join(temporaryFolder(), "data");
  layEmptyDatabase(data);
  const store = await openStoreIn(data);
  await store.shops.add({ domain: "alpha.myshopify.com", plan: "pro", currency: "USD" }, START);
  await fill(store);
  await store.close();
  const opened = await openCheckup(data, null);
  const patient: Patient = {
    config: readConfig({ data }, env),
    opened,
    now: () => START,
    fetch: (async () => {
      throw new Error("no network in this test");
    }) as unknown as typeof fetch,
    resolve: async () => [],
    connect: async () => {
      throw new Error("no network in this test");
    },
    freeBytes: () => 1e12,
    descriptorLimit: () => 1_024,
    findDamage: async () => undefined,
    ...changed,
  };
  afterTest(() => checkupOf(patient).close());
  return patient;
}

/** Runs the check of this name. */
export function runCheck(checks: readonly Check[], name: string, patient: Patient): Awaitable<Finding> {
  return named(checks, name).run(patient);
}

/** Runs the check of this name on the patient's data. */
export function runDataCheck(checks: readonly DataCheck[], name: string, patient: Patient): Awaitable<Finding> {
  return named(checks, name).run(checkupOf(patient), patient);
}

function named<T extends { name: string }>(checks: readonly T[], name: string): T {
  const check = checks.find((each) => each.name === name);
  if (check === undefined) throw new Error(`there is no check ${name}`);
  return check;
}

export function checkupOf({ opened }: Patient): Checkup {
  if ("problem" in opened) throw new Error(opened.detail);
  return opened.checkup;
}

/** Replaces parts of what the checks read from the patient's database. */
export function withCheckup(patient: Patient, changed: Partial<Checkup>): Patient {
  return { ...patient, opened: { checkup: { ...checkupOf(patient), ...changed } } };
}
