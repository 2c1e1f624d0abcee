import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { ENGINE, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";
/** Below 2,500, customers and orders are read page by page, not by bulk operations. */
const CONTRACTS = 2_400;
const COUNT = CONTRACTS.toLocaleString("en");

/** A connected shop whose load takes some seconds, because the platform gives few points. */
async function connectedShop() {
  const platform = await new PlatformProcess().start("--restore-rate", "300", "--maximum-available", "1000");
  await platform.tell("addShop");
  await platform.tell("seed", { contracts: CONTRACTS, linesEach: 1, renewals: 0 });
  const program = new Program(undefined, platform.env);
  await program.json(["shop", "connect", DOMAIN, "--client-credentials"]);
  return { platform, program };
}

async function loadText(program: Program): Promise<string | null> {
  const { platform } = await program.json<{ platform: { load: string | null } }>(["shop", "show", DOMAIN]);
  return platform.load;
}

test("serve loads a connected shop by itself, and the next start continues a load that was killed", async () => {
  const { platform, program } = await connectedShop();
  const first = await program.serve();
  const underWay =
    /^the first load is under way: [\d,]+ of (about )?[\d,]+ subscriptions, (?:less than a minute|\d+ minutes?) left$/;
  await eventually(async () => underWay.test((await loadText(program)) ?? ""));
  await first.stop("SIGKILL");
  expect(await loadText(program)).toBe("the shop is not loaded yet: `sds serve` does that");
  const mirrored = (await program.rows("subscriptions")).length;
  expect(mirrored).toBeLessThan(CONTRACTS);
  const before = (await platform.spent()).operations["AllCustomers"];
  expect(before).toBeGreaterThan(0);

  // On PostgreSQL, this is another node. It takes over the shop when the lease of the killed node ends.
  await program.serve();
  await eventually(async () => /^the first load is under way: .* subscriptions/.test((await loadText(program)) ?? ""));
  const { stderr, stdout } = await program.run(["sync"]);
  expect(stderr).toContain(`A load of ${DOMAIN} is under way already.`);
  expect(stdout).toStartWith(`read ${COUNT} customers, ${COUNT} subscriptions, `);
  expect(await program.rows("subscriptions")).toHaveLength(CONTRACTS);
  expect((await platform.spent()).operations["AllCustomers"]).toBe(before);
  expect(await loadText(program)).toBeNull();
  expect(await program.rows("deliveries")).toEqual([]);
});

test("sds sync refuses other options while serve loads the shop, and continues a load that serve left", async () => {
  const { program } = await connectedShop();
  const server = await program.serve();
  await eventually(async () => (await program.rows("subscriptions")).length > 0);
  expect(await program.run(["sync", "--events"])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(`a load of ${DOMAIN} without these options is under way: wait until it ends`),
  });
  const following = await program.start(["sync"]);
  let told = "";
  let isStopped = false;
  for await (const bytes of following.stderr) {
    told += Buffer.from(bytes).toString();
    if (isStopped || !told.includes("is under way already")) continue;
    await server.stop(ENGINE === "sqlite" ? "SIGKILL" : "SIGTERM");
    isStopped = true;
  }
  expect({ status: await following.exited, isStopped }).toEqual({ status: 0, isStopped: true });
  expect(await program.rows("subscriptions")).toHaveLength(CONTRACTS);
});
