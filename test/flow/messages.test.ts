import { describe, expect, test } from "bun:test";
import type { Shop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { receiveFailed } from "../conformance/fixtures.ts";
import { LINE } from "../support/connected.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { failure, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";
const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

/** Runs a function on the database of a program, while commands may run too. */
async function onStore(program: Program, run: (store: Store) => Promise<void>): Promise<void> {
  const store = await program.openStore();
  await run(store);
  await store.close();
}

async function shopIn({ shops }: Store): Promise<Shop> {
  const shop = await shops.find(DOMAIN);
  if (shop === undefined) throw new Error("the shop is missing");
  return shop;
}

describe("the plan", () => {
  const words = (feature: string) =>
    `this shop's plan has no ${feature} with the Pro plan, and with the Free plan through the API and webhooks add-on\n`;

  test.each([
    [["key", "create", "--label", "A"], "API access: it comes"],
    [["webhook", "set", "--all-topics"], "webhooks: they come"],
    [["shop", "set", DOMAIN, "--triggers", "all"], "workflow triggers: they come"],
  ])("%j works on a plan without access, with a warning", async (args, feature) => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN, "--plan", "free"]);
    const { status, stderr } = await program.run([...args, "--json"]);
    expect(status).toBe(0);
    expect(stderr).toStartWith(`sds: warning: ${words(feature)}`);
  });

  test("webhook test is refused on a plan without webhooks", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN, "--plan", "free"]);
    expect(await program.run(["webhook", "test"])).toEqual({
      status: 1,
      stdout: "",
      stderr: `sds: ${words("webhooks: they come")}`,
    });
  });
});

test("the operator's plan stays until the operator lets the plan follow the platform", async () => {
  const program = new Program();
  const isFixed = async () => {
    let fixed: boolean | undefined;
    await onStore(program, async (store) => {
      fixed = (await store.shops.settings((await shopIn(store)).id)).planFixed;
    });
    return fixed;
  };
  await program.json(["shop", "add", DOMAIN]);
  expect(await isFixed()).toBe(false);
  await program.json(["shop", "set", DOMAIN, "--plan", "pro"]);
  expect(await isFixed()).toBe(true);
  expect(await program.json(["shop", "set", DOMAIN, "--plan", "platform"])).toMatchObject({ plan: "pro" });
  expect(await isFixed()).toBe(false);
  await program.run(["shop", "remove", DOMAIN, "--yes"]);
  await program.json(["shop", "add", DOMAIN, "--plan", "pro"]);
  expect(await isFixed()).toBe(true);
});

test("webhook set says what is still missing before anything is sent", async () => {
  const program = await Program.withShop();
  const set = async (...args: string[]) => (await program.run(["webhook", "set", ...args])).stderr;
  expect(await set("--all-topics")).toBe("Nothing is sent yet: set a URL with `sds webhook set --url ...`.\n");
  expect(await set("--url", "https://93.184.215.14/")).toBe("");
  expect(await program.run(["webhook", "clear"])).toEqual({ status: 0, stdout: "", stderr: "Webhooks are off.\n" });
  expect(await set("--url", "https://93.184.215.14/")).toBe(
    "Nothing is sent yet: choose topics with `sds webhook set --all-topics` or --topics.\n",
  );
});

describe("messages agree with their numbers", () => {
  test("delivery retry --dead counts, and with --yes sends", async () => {
    const program = await Program.withShop();
    const die = () => onStore(program, async (store) => void (await deadDelivery(store, await shopIn(store))));
    const retry = async (...args: string[]) => {
      const { stdout, stderr } = await program.run(["delivery", "retry", "--dead", ...args]);
      return stdout + stderr;
    };
    expect(await retry()).toBe("There are no dead deliveries.\n");
    await die();
    expect(await retry()).toBe("1 delivery is dead. Add --yes to send it again.\n");
    await die();
    expect(await retry()).toBe("2 deliveries are dead. Add --yes to send them again.\n");
    expect(await retry("--since", "2026-02-01T00:00:00Z", "--yes")).toBe("2 deliveries are sent again now.\n");
    await die();
    expect(await retry("--yes")).toBe("1 delivery is sent again now.\n");
  });

  test("inbox retry --failed counts what it processes again", async () => {
    const program = await Program.withShop();
    const fail = (count: number) => onStore(program, async (store) => receiveFailed(store, await shopIn(store), count));
    const run = async (...args: string[]) => (await program.run(["inbox", ...args])).stderr;
    expect(await run("list")).toBe("The inbox has no waiting or failed items.\n");
    expect(await run("retry", "--failed")).toBe("The inbox has no failed items.\n");
    await fail(1);
    expect(await run("retry", "--failed")).toBe("A running `sds serve` processes 1 item again now.\n");
    await fail(1);
    expect(await run("retry", "--failed")).toBe("A running `sds serve` processes 2 items again now.\n");
    expect(await run("list", "--status", "failed")).toBe("The inbox has no failed items.\n");
  });
});

test("shop connect and sync say that the platform shows no contracts to this app", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", {});
  const program = new Program(undefined, platform.env);
  const warning = "sds: warning: the platform shows this app no subscription contracts.";
  expect((await program.run(["shop", "connect", DOMAIN, "--client-credentials"])).stderr).toContain(warning);
  expect((await program.run(["sync"])).stderr).toContain(warning);
});

test("shop connect, sync and shop show describe the shop's connection to the platform", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", { currency: "EUR" });
  const customer = await platform.tell("createCustomer", { email: "ada@example.com" });
  await platform.tell("createContract", { customer, lines: [LINE] });
  const program = await Program.withShop(platform.env);
  const shown = async () =>
    Object.fromEntries(
      (await program.run(["shop", "show", DOMAIN])).stdout.split("\n").map((each) => each.split(/ {2,}/)),
    );
  expect(await shown()).toMatchObject({ domain: DOMAIN, plan: "pro", platform: "not connected" });
  expect(await shown()).not.toHaveProperty("inbox");
  expect(await program.run(["shop", "connect", DOMAIN, "--client-credentials"])).toEqual({
    status: 0,
    stdout: "",
    stderr: `Connected ${DOMAIN} (EUR, plan pro). \`sds serve\` loads it; \`sds sync ${DOMAIN}\` shows the progress, or loads it without \`serve\`.\n`,
  });
  expect(await program.run(["sync"])).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^read 1 customer, 1 subscription, 1 order in \d+ s; changed \d, events 0\n$/),
    stderr: "",
  });
  const { platform: entry } = await program.json<{ platform: object }>(["shop", "show", DOMAIN]);
  expect(Object.keys(entry)).toEqual([
    "connected",
    "trouble",
    "troubleSince",
    "warnings",
    "uninstalledAt",
    "load",
    "syncedAt",
    "reconciledAt",
    "repairs",
    "inbox",
    "retryDays",
    "creditTitle",
    "triggers",
  ]);
  expect(entry).toMatchObject({
    connected: true,
    trouble: null,
    syncedAt: expect.stringMatching(ISO),
    reconciledAt: null,
    repairs: null,
    inbox: { waiting: 0, failed: 0 },
    retryDays: [1, 3, 5],
    creditTitle: "Loyalty credit",
    triggers: [],
  });
  expect(await shown()).toMatchObject({
    platform: "connected",
    syncedAt: expect.stringMatching(ISO),
    reconciledAt: "never",
    repairs: "never",
    inbox: "0 waiting, 0 failed",
    retryDays: "1,3,5",
    triggers: "none",
  });
  await onStore(program, async (store) => {
    await store.connections.setTrouble((await shopIn(store)).id, "the platform refuses the token", 0);
  });
  expect((await program.json<{ platform: object }>(["shop", "show", DOMAIN])).platform).toMatchObject({
    connected: false,
    trouble: "the platform refuses the token",
    troubleSince: "1970-01-01T00:00:00.000Z",
  });
  const since = "the platform refuses the token; since 1970-01-01T00:00:00.000Z";
  expect(await shown()).toMatchObject({ platform: since });
  expect((await program.run(["status"])).stdout).toContain(`${DOMAIN}: ${since}\n`);
  expect((await program.run(["shop", "disconnect", DOMAIN])).stderr).toBe(`Disconnected ${DOMAIN}.\n`);
  expect(await shown()).toMatchObject({ platform: "not connected", syncedAt: expect.stringMatching(ISO) });
  expect(await program.run(["shop", "disconnect", DOMAIN])).toEqual(failure(3, `${DOMAIN} is not connected`));
});
