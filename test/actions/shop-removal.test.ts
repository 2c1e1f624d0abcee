import { expect, test } from "bun:test";
import { createShopRemover, removeShop } from "../../src/actions/shop-removal.ts";
import { createLog } from "../../src/lib/log.ts";
import { StoreError } from "../../src/store/port/store-error.ts";
import { START, testApp } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { customers } from "../support/records.ts";

const BUSY = new StoreError("busy", new Error("database is locked"));

/** Makes a store with shops of 350 customers each. The test can count removal steps and make them fail. */
async function shopsToRemove(...names: string[]) {
  const { app, addShop } = await testApp();
  const { shops, mirror } = app.store;
  const ids: number[] = [];
  for (const name of names) {
    const { shop } = await addShop(`${name}.myshopify.com`);
    await mirror.applyRecords([{ shop, records: customers(350) }], START, []);
    ids.push(shop.id);
  }
  const steps: number[] = [];
  const rests: number[] = [];
  const logged: string[] = [];
  const remover = (beforeStep: (index: number) => void = () => {}, isOwn: (index: number) => boolean = () => true) => {
    const made = createShopRemover({
      membership: { mayBegin: (id) => isOwn(ids.indexOf(id)) },
      shops: {
        removing: shops.removing,
        async removeSome(id) {
          beforeStep(ids.indexOf(id));
          steps.push(ids.indexOf(id));
          return shops.removeSome(id);
        },
      },
      sleep: async (ms) => {
        rests.push(ms);
      },
      log: createLog("info", { write: (text) => logged.push(text) }, () => START),
    });
    afterTest(() => made.stop());
    return made;
  };
  return { app, shops, steps, rests, logged, remover };
}

const begun = async ({ shops }: Awaited<ReturnType<typeof shopsToRemove>>) => {
  for (const { domain } of await shops.list()) await shops.beginRemoval(domain, START);
};

test("shops are removed step by step, in turn, with a rest after each step", async () => {
  const all = await shopsToRemove("alpha", "beta");
  await begun(all);
  all.remover().wake();
  await eventually(async () => (await all.shops.removing()).length === 0);
  expect(all.steps.slice(0, 6)).toEqual([0, 1, 0, 1, 0, 1]);
  await eventually(() => all.logged.length === 2);
  expect(all.logged.map((line) => JSON.parse(line).message)).toEqual(
    new Array(2).fill("a shop was removed with everything that was stored about it"),
  );
  expect(all.rests.length).toBe(all.steps.length - 2);
  expect(Math.min(...all.rests)).toBeGreaterThan(0);
});

test("a failed step is repeated after a pause, without a wake", async () => {
  const all = await shopsToRemove("alpha");
  await begun(all);
  let failures = 0;
  const remover = all.remover(() => {
    if (all.steps.length !== 2 || failures === 3) return;
    failures += 1;
    throw BUSY;
  });
  remover.wake();
  await eventually(async () => (await all.shops.removing()).length === 0);
  expect(failures).toBe(3);
  const warned = all.logged.filter((line) => line.includes("cannot go on with the removal of a shop; nothing is lost"));
  expect(warned).toHaveLength(3);
});

test("a shop whose step fails repeatedly does not delay the removal of other shops", async () => {
  const all = await shopsToRemove("alpha", "beta");
  await begun(all);
  const remover = all.remover((index) => {
    if (index === 0) throw new StoreError("lost", new Error("database disk image is malformed"));
  });
  remover.wake();
  await eventually(async () => (await all.shops.removing()).length === 1);
  expect((await all.shops.removing()).map(({ domain }) => domain)).toEqual(["alpha.myshopify.com"]);
  await eventually(() => all.logged.some((line) => line.includes("malformed")));
});

test("a node stops removing a shop that another node has taken over, even in the middle of a turn", async () => {
  const all = await shopsToRemove("alpha", "beta");
  await begun(all);
  all.remover(undefined, (index) => index === 1 || all.steps.length === 0).wake();
  await eventually(async () => (await all.shops.removing()).length === 1);
  expect(all.steps.filter((index) => index === 0)).toEqual([0]);
});

test("a locked database ends the turn at once, because each try blocks the program", async () => {
  const all = await shopsToRemove("alpha", "beta");
  await begun(all);
  const tried: number[] = [];
  const remover = all.remover((index) => {
    tried.push(index);
    if (all.rests.length === 0) throw BUSY;
  });
  remover.wake();
  await eventually(async () => (await all.shops.removing()).length === 0);
  expect(tried.slice(0, 3)).toEqual([0, 0, 1]);
});

test("a stop ends after the step under way, and the next program goes on", async () => {
  const all = await shopsToRemove("alpha");
  await begun(all);
  let stopping: Promise<void> | undefined;
  const first = all.remover(() => {
    stopping ??= first.stop();
  });
  first.wake();
  await eventually(() => stopping !== undefined);
  await stopping;
  expect(all.steps.length).toBe(1);
  expect(await all.shops.removing()).toHaveLength(1);
  all.remover().wake();
  await eventually(async () => (await all.shops.removing()).length === 0);
});

test("the app takes up a removal that another process began, before its start and while it runs", async () => {
  const { app, shops } = await shopsToRemove("alpha", "beta");
  await shops.beginRemoval("alpha.myshopify.com", START);
  await app.start();
  await eventually(async () => (await shops.removing()).length === 0);
  await shops.beginRemoval("beta.myshopify.com", START);
  await eventually(async () => (await shops.removing()).length === 0);
});

test("a failed removal by hand says that it began, and how it continues", async () => {
  const { shops } = await shopsToRemove("alpha");
  const sleep = async () => {};
  const failing = { ...shops, removeSome: () => Promise.reject(BUSY) };
  expect(await removeShop(shops, "gamma.myshopify.com", START, sleep)).toBe(false);
  const message =
    "the removal of alpha.myshopify.com began and is not finished: database is locked; " +
    "`sds serve` goes on with it, or run this command again";
  const thrown = await removeShop(failing, "alpha.myshopify.com", START, sleep).catch((error: unknown) => error);
  expect(thrown).toMatchObject({ name: "SdsError", code: "failed", message });
  expect(await removeShop(shops, "alpha.myshopify.com", START, sleep)).toBe(true);
  expect(await shops.removing()).toEqual([]);
});
