import { describe, expect, test } from "bun:test";
import { MINUTE, OK, sendingSlowly } from "./slow-sending.ts";

describe("an operator reads in the log", () => {
  const failure = { statusCode: 500, error: "The endpoint responded with HTTP 500.", timedOut: false };

  async function failing(waitsMs: number[]) {
    const all = await sendingSlowly({ waitsMs, perShop: 1 });
    const shop = await all.addShop("a", 4);
    const endNext = async (outcome = OK) => {
      await all.wake();
      await all.endNew(outcome);
    };
    const lines = () =>
      all.logged
        .splice(0)
        .map((line) => JSON.parse(line))
        .filter(({ level }) => level !== "debug")
        .map(({ time: _time, ...rest }) => rest);
    return { ...all, shop, endNext, lines };
  }
  const where = { shop: "a.myshopify.com", topic: "subscription.created", host: "hooks.example.com" };

  test("that an endpoint fails, once, and that it answers again", async () => {
    const { endNext, lines, clock } = await failing([MINUTE, MINUTE]);
    await endNext(failure);
    expect(lines()).toEqual([{ level: "warn", message: "the endpoint fails", ...where, error: failure.error }]);
    await endNext(failure);
    expect(lines()).toEqual([]);
    clock.ms += MINUTE;
    await endNext();
    expect(lines()).toEqual([{ level: "info", message: "the endpoint answers again", ...where }]);
    await endNext();
    expect(lines()).toEqual([]);
  });

  test("that a new URL of an endpoint fails too", async () => {
    const { shop, endNext, lines, setUrl } = await failing([]);
    await endNext(failure);
    expect(lines()[0]).toMatchObject({ message: "the endpoint fails", host: "hooks.example.com" });
    await setUrl(shop, "https://new.example.com/");
    // This delivery was claimed with the old URL.
    await endNext(failure);
    await endNext(failure);
    const messages = lines().filter(({ message }) => message === "the endpoint fails");
    expect(messages).toMatchObject([{ host: "new.example.com" }]);
  });

  test("dead deliveries, but not before their results are recorded", async () => {
    const { endNext, lines, breakDatabase, endPause, settle, steady } = await failing([]);
    await endNext(failure);
    const dead = {
      level: "warn",
      message: "deliveries are dead: their last attempt failed",
      deliveries: 1,
      ...where,
      error: failure.error,
    };
    expect(lines()).toMatchObject([{ message: "the endpoint fails" }, dead]);
    steady.ms += MINUTE;
    const repair = breakDatabase();
    await endNext(failure);
    expect(lines().map(({ message }) => message)).not.toContain(dead.message);
    repair();
    endPause();
    await settle();
    expect(lines()).toEqual([dead]);
  });

  test("dead deliveries of a shop once a minute, summed up", async () => {
    const all = await failing([]);
    const other = await all.addShop("b", 1);
    await all.setUrl(other, "https://other.example.com/");
    const dead = () => all.lines().filter(({ message }) => message.startsWith("deliveries are dead"));
    await all.endNext(failure);
    expect(dead()).toMatchObject([
      { deliveries: 1, ...where },
      { deliveries: 1, shop: "b.myshopify.com", host: "other.example.com" },
    ]);
    for (const error of ["first", "last"]) await all.endNext({ ...failure, error });
    all.steady.ms += MINUTE - 1;
    await all.wake();
    expect(dead()).toEqual([]);
    all.steady.ms += 1;
    await all.wake();
    expect(dead()).toMatchObject([{ deliveries: 2, ...where, error: "last" }]);
  });

  test("dead deliveries that were not logged yet, when the program stops", async () => {
    const { endNext, lines, sender, wake, endNew } = await failing([]);
    await endNext(failure);
    await endNext(failure);
    await wake();
    lines();
    const stopping = sender.stop();
    await endNew(failure);
    await stopping;
    expect(lines()).toMatchObject([{ message: "deliveries are dead: their last attempt failed", deliveries: 2 }]);
  });

  test("no result that came after another process had taken over the delivery", async () => {
    const { shop, deliveries, wake, newAttempts, lines, clock, end } = await failing([]);
    await wake();
    const [attempt] = newAttempts();
    clock.ms += 15_000;
    await deliveries.recordAndClaim(
      [],
      [{ shopId: shop.id, kind: "webhook", count: 4 }],
      clock.ms,
      clock.ms + 15_000,
      [],
    );
    await end([attempt], failure);
    expect(lines()).toEqual([]);
  });
});
