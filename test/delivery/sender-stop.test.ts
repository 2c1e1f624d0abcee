import { describe, expect, test } from "bun:test";
import { sendingSlowly } from "./slow-sending.ts";

describe("a database that fails", () => {
  test("when due deliveries are read makes the sender report a failure, until the database works again", async () => {
    const { sender, addShop, wake, settle, newAttempts, endPause, breakDatabase } = await sendingSlowly();
    await addShop("a", 1);
    const repair = breakDatabase();
    await wake();
    expect([sender.failing, newAttempts().length]).toEqual([true, 0]);
    repair();
    await wake();
    expect([sender.failing, newAttempts().length]).toEqual([true, 0]);
    endPause();
    await settle();
    expect([sender.failing, newAttempts().length]).toEqual([false, 1]);
  });

  test("keeps results for the next turn, which records each once, in order", async () => {
    const { settle, endPause, deliveries, log, logged, beginFour, end } = await sendingSlowly();
    const { shop, running } = await beginFour("a", 7);
    const { recordAndClaim } = deliveries;
    const failure = Promise.withResolvers<never>();
    deliveries.recordAndClaim = () => failure.promise;
    await end(running.slice(0, 2));
    // These attempts end while the failing turn still records the other results.
    await end(running.slice(2));
    failure.reject(new Error("disk I/O error"));
    await settle();
    expect(logged.filter((line) => line.includes("disk I/O error")).map((line) => JSON.parse(line).kept)).toEqual([4]);
    const recorded: string[] = [];
    deliveries.recordAndClaim = async (results, ...others) => {
      recorded.push(...results.map(({ claim }) => claim.id));
      return recordAndClaim(results, ...others);
    };
    endPause();
    await settle();
    expect(recorded).toEqual(running.map(({ claim }) => claim.id));
    expect((await log(shop)).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(
      Array<string>(7).fill("delivered 1"),
    );
  });
});

describe("stop", () => {
  async function running() {
    const all = await sendingSlowly();
    const { shop, running: attempts } = await all.beginFour("a", 9);
    return { ...all, shop, attempts };
  }

  function countDelivered(deliveries: { status: string }[]): number {
    return deliveries.filter(({ status }) => status === "delivered").length;
  }

  test("waits for the attempts under way, records each at its end, and stops claiming", async () => {
    const { sender, shop, attempts, settle, newAttempts, log } = await running();
    let stopped = false;
    const stopping = sender.stop().then(() => {
      stopped = true;
    });
    for (const [index, attempt] of attempts.entries()) {
      expect([stopped, countDelivered(await log(shop))]).toEqual([false, 3 + index]);
      attempt.end();
      await settle();
    }
    await stopping;
    expect(countDelivered(await log(shop))).toBe(7);
    expect(newAttempts()).toEqual([]);
  });

  test("tries once more to record results that could not be recorded", async () => {
    const { sender, shop, attempts, breakDatabase, log, end } = await running();
    const repair = breakDatabase();
    await end(attempts);
    repair();
    await sender.stop();
    expect(countDelivered(await log(shop))).toBe(7);
  });

  test("ends although the database fails", async () => {
    const { sender, attempts, breakDatabase } = await running();
    breakDatabase();
    for (const attempt of attempts) attempt.end();
    await sender.stop();
    expect(sender.failing).toBe(true);
  });
});
