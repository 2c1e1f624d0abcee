import { describe, expect, test } from "bun:test";
import { progressText, type SyncProgress } from "../../../src/domain/platform/load-progress.ts";
import { connected, HOUR_MS, seeded } from "../../support/connected.ts";

describe("a load", () => {
  test("reports its progress", async () => {
    const all = await seeded({ contracts: 600 });
    const progress: SyncProgress[] = [];
    await all.load({}, (each) => progress.push(each));
    const doneIn = (stage: string) => progress.filter((each) => each.stage === stage).map(({ done }) => done);
    expect(doneIn("customers")).toEqual([250 / 600, 500 / 600, 1]);
    const contracts = doneIn("subscriptions");
    expect(contracts).toHaveLength(3);
    expect(contracts.every((done, index) => done !== undefined && done > (contracts[index - 1] ?? 0))).toBe(true);
    expect(contracts.at(-1)).toBe(1);
    expect(progress.at(-1)?.counts).toMatchObject({ customers: 600, subscriptions: 600 });
  });

  test("estimates the whole shop's progress after an interruption too", async () => {
    const all = await seeded({ contracts: 600 });
    all.platform.fault = ({ operation, n }) => (operation === "AllContracts" && n > 1 ? { status: 404 } : undefined);
    const texts: string[] = [];
    const load = () => all.load({}, (progress) => texts.push(progressText(progress)));
    await expect(load()).rejects.toThrow("HTTP 404");
    expect(texts.splice(0).at(-1)).toBe("250 of about 610 subscriptions");
    all.platform.fault = () => undefined;
    await load();
    expect(texts).toEqual(["500 of about 600 subscriptions", "600 of 600 subscriptions"]);
  });

  test("needs no estimate of its progress", async () => {
    const all = await seeded({ contracts: 600 });
    all.platform.fault = ({ operation }) => (operation === "NewestContract" ? { status: 404 } : undefined);
    const done: unknown[] = [];
    await all.load({}, (progress) => progress.stage === "subscriptions" && done.push(progress.done));
    expect(done).toEqual([undefined, undefined, undefined]);
    expect(await all.shop.all("subscriptions")).toHaveLength(600);
  });

  test("counts the contracts of a large shop, because most of them may have been made at one time", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 1_800 });
    all.test.clock.ms += HOUR_MS;
    all.createContract();
    all.test.clock.ms += HOUR_MS;
    const texts: string[] = [];
    await all.load({}, (progress) => texts.push(progressText(progress)));
    expect(texts.slice(-2)).toEqual(["1,750 of about 1,900 subscriptions", "1,801 of 1,801 subscriptions"]);
    expect(all.operations().filter((name) => name === "ContractIds").length).toBeLessThan(5);
  });
});
