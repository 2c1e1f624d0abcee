import { describe, expect, test } from "bun:test";
import { type ApiKeyAuthenticator, createApiKeyAuthenticator } from "../../../src/http/read/api-key-authenticator.ts";
import { createWrongKeyLog } from "../../../src/http/read/wrong-key-log.ts";
import { createLog } from "../../../src/lib/log.ts";
import { nextTurn } from "../../../src/lib/waits.ts";
import { START, testShop } from "../../support/app.ts";

const client = () => "192.0.2.1";

/** Uses a key, and waits for the write that follows the answer. */
async function use(authenticator: ApiKeyAuthenticator, header: string): Promise<void> {
  await authenticator.authenticate(header, client);
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
}

/** An authenticator on a real store. `writes` has the times at which last uses were written. */
async function openAuthenticator() {
  const { app, clock, shop, key } = await testShop();
  const header = `Bearer ${key}`;
  const writes: number[] = [];
  const logged: string[] = [];
  const log = createLog("debug", { write: (text) => logged.push(text) }, clock.now);
  const keys = { ...app.store.keys };
  const store = {
    ...keys,
    touch: async (uses: ReadonlyMap<string, number>) => {
      await keys.touch(uses);
      writes.push(clock.ms - START);
    },
  };
  const wrongKeys = createWrongKeyLog(clock.monotonic, log);
  const open = () => createApiKeyAuthenticator({ store, now: clock.now, clock: clock.monotonic, log, wrongKeys });
  const lastUsedAt = async () => ((await keys.list(shop.id))[0]?.lastUsedAt ?? START - 1) - START;
  return { header, clock, logged, open, store, writes, lastUsedAt, authenticator: open() };
}

describe("the last use of a key", () => {
  test("is written right after the answer to the first use, then at most once a minute, and at shutdown", async () => {
    const { authenticator, header, clock, writes, lastUsedAt } = await openAuthenticator();
    const useAfter = async (after: number) => {
      clock.ms = START + after;
      await use(authenticator, header);
    };
    await useAfter(0);
    expect(writes).toEqual([0]);
    for (const after of [30_000, 59_999, 60_000, 61_500, 119_999, 120_000]) {
      await useAfter(after);
      await authenticator.writeUses();
    }
    expect(writes).toEqual([0, 60_000, 120_000]);
    await useAfter(130_000);
    clock.ms = START + 140_000;
    await authenticator.writeUses({ all: true });
    expect(writes).toEqual([0, 60_000, 120_000, 140_000]);
    expect(await lastUsedAt()).toBe(130_000);
  });

  test("is written once a minute also after the wall clock was set back by an hour", async () => {
    const { authenticator, header, clock, writes, lastUsedAt, open } = await openAuthenticator();
    await use(authenticator, header);
    clock.step(-3_600_000);
    clock.ms += 60_000;
    await use(authenticator, header);
    await authenticator.writeUses();
    expect(writes).toHaveLength(2);
    // The stored time now lies in the future. A program that starts now must not wait until that time.
    const restarted = open();
    await use(restarted, header);
    await restarted.writeUses();
    expect(writes).toHaveLength(3);
    expect(await lastUsedAt()).toBe(0);
  });

  test("is written once a minute, counted from the write and not from the written use", async () => {
    const { authenticator, header, clock, writes } = await openAuthenticator();
    const at = (after: number) => {
      clock.ms = START + after;
    };
    await use(authenticator, header);
    at(30_000);
    await use(authenticator, header);
    at(60_000);
    await authenticator.writeUses();
    at(100_000);
    await use(authenticator, header);
    await authenticator.writeUses();
    expect(writes).toEqual([0, 60_000]);
  });

  test("is written again only after another use", async () => {
    const { authenticator, header, clock, writes } = await openAuthenticator();
    await use(authenticator, header);
    clock.ms += 120_000;
    await authenticator.writeUses();
    await authenticator.writeUses({ all: true });
    expect(writes).toEqual([0]);
  });

  test("during a write is kept for the next one", async () => {
    const { authenticator, header, clock, store, lastUsedAt } = await openAuthenticator();
    const { touch } = store;
    await use(authenticator, header);
    clock.ms += 60_000;
    await use(authenticator, header);
    store.touch = async (uses) => {
      clock.ms += 1;
      await use(authenticator, header);
      await touch(uses);
    };
    await authenticator.writeUses();
    expect(await lastUsedAt()).toBe(60_000);
    store.touch = touch;
    await authenticator.writeUses({ all: true });
    expect(await lastUsedAt()).toBe(60_001);
  });

  test("is written at most once a minute, even across a restart", async () => {
    const { authenticator, open, header, clock, writes } = await openAuthenticator();
    await use(authenticator, header);
    const restarted = open();
    clock.ms += 30_000;
    await use(restarted, header);
    await restarted.writeUses();
    expect(writes).toEqual([0]);
    clock.ms += 30_000;
    await restarted.writeUses();
    expect(writes).toEqual([0, 60_000]);
  });

  test("that cannot be written is logged, does not fail the request, and is written later", async () => {
    const { authenticator, header, clock, store, logged, writes, lastUsedAt } = await openAuthenticator();
    const { touch } = store;
    store.touch = async () => {
      throw new Error("database is locked");
    };
    await use(authenticator, header);
    expect(logged.map((text) => JSON.parse(text))).toMatchObject([
      { level: "warn", message: "cannot write when keys were last used", error: "database is locked" },
    ]);
    store.touch = touch;
    clock.ms += 1_000;
    await authenticator.writeUses();
    expect([writes, await lastUsedAt()]).toEqual([[1_000], 0]);
  });

  test("does not delay the request; a first use that cannot be written is retried only by the job", async () => {
    const { authenticator, header, clock, store, writes } = await openAuthenticator();
    const { touch } = store;
    let tries = 0;
    store.touch = async () => {
      tries += 1;
      throw new Error("database is locked");
    };
    await authenticator.authenticate(header, client);
    expect(tries).toBe(0);
    for (let request = 0; request < 5; request += 1) await use(authenticator, header);
    expect(tries).toBe(1);
    clock.ms += 1_000;
    store.touch = touch;
    await authenticator.writeUses();
    expect(writes).toEqual([1_000]);
  });
});
