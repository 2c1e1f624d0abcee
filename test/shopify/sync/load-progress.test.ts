import { describe, expect, test } from "bun:test";
import { progressText, type SyncProgress } from "../../../src/domain/platform/load-progress.ts";
import { connected, HOUR_MS, seeded } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { isLookupOf } from "../../support/platform/faults.ts";

/** A shop whose contracts and customers are on three pages. */
async function threePages() {
  const all = await seeded({ contracts: 60 });
  all.remote.maxPageRows = 25;
  return all;
}

describe("a load", () => {
  test("reports its progress", async () => {
    const all = await threePages();
    const progress: SyncProgress[] = [];
    await all.load({}, (each) => progress.push(each));
    const doneIn = (stage: string) => progress.filter((each) => each.stage === stage).map(({ done }) => done);
    expect(doneIn("customers")).toEqual([25 / 60, 50 / 60, 1]);
    const contracts = doneIn("subscriptions");
    expect(contracts).toHaveLength(3);
    expect(contracts.every((done, index) => done !== undefined && done > (contracts[index - 1] ?? 0))).toBe(true);
    expect(contracts.at(-1)).toBe(1);
    expect(progress.at(-1)?.counts).toMatchObject({ customers: 60, subscriptions: 60 });
  });

  test("estimates the whole shop's progress after an interruption too", async () => {
    const all = await threePages();
    all.platform.fault = ({ operation, n }) => (operation === "AllContracts" && n > 1 ? { status: 404 } : undefined);
    const texts: string[] = [];
    const load = () => all.load({}, (progress) => texts.push(progressText(progress)));
    await expect(load()).rejects.toThrow("HTTP 404");
    expect(texts.splice(0).at(-1)).toBe("25 of about 61 subscriptions");
    all.platform.fault = () => undefined;
    await load();
    expect(texts).toEqual(["50 of about 60 subscriptions", "60 of 60 subscriptions"]);
  });

  test("needs no estimate of its progress", async () => {
    const all = await threePages();
    all.platform.fault = ({ operation }) => (operation === "NewestContract" ? { status: 404 } : undefined);
    const done: unknown[] = [];
    await all.load({}, (progress) => progress.stage === "subscriptions" && done.push(progress.done));
    expect(done).toEqual([undefined, undefined, undefined]);
    expect(await all.shop.all("subscriptions")).toHaveLength(60);
  });

  test("counts the contracts of a large shop, because most of them may have been made at one time", async () => {
    const all = await connected();
    all.createContract();
    all.test.clock.ms += 100 * 24 * HOUR_MS;
    all.remote.seed({ contracts: 1_300 });
    all.test.clock.ms += HOUR_MS;
    const requests = (name: string) => all.platform.requests.filter(({ operation }) => operation === name);
    const areCounted = () => requests("ContractIds").filter(({ outcome }) => outcome === "ok").length >= 2;
    const onFifth = all.remote.ids("contract")[1_100] ?? "";
    all.platform.fault = (info) => (isLookupOf(onFifth, info) ? { until: eventually(areCounted) } : undefined);
    const texts: string[] = [];
    await all.load({}, (progress) => texts.push(progressText(progress)));
    // The estimate by the time of the last contract would be 1,300.
    expect(texts.slice(-2)).toEqual(["1,250 of about 1,400 subscriptions", "1,301 of 1,301 subscriptions"]);
    expect([requests("AllContracts").length, requests("ContractIds").length]).toEqual([6, 2]);
  });
});
