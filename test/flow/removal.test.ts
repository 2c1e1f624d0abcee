import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { failure, Program } from "../support/program.ts";
import { addBigShop, fileHas, platformSecretEnv, postRemoval, rowsOfShop, shopRow } from "../support/removed-shop.ts";

const [ALPHA, BETA] = ["alpha.myshopify.com", "beta.myshopify.com"];
const KILLS = 2;

/** Adds two shops. @returns the id of alpha, and what is stored about beta */
async function twoShops(rows: number) {
  const program = new Program(undefined, platformSecretEnv(temporaryFolder()));
  const run = (args: string[], stdin = "") => program.json(args, { stdin });
  await addBigShop(run, ALPHA, "Lovelace", rows);
  await addBigShop(run, BETA, "Hopper", 20);
  const [alpha, beta] = [
    Number((await shopRow(program, ALPHA))?.["id"]),
    Number((await shopRow(program, BETA))?.["id"]),
  ];
  return { program, alpha, beta, before: await rowsOfShop(program, beta) };
}

const customersOf = (program: Program, shopId: number) => program.count("customers", shopId);

test("an acknowledged shop/redact is completed, although the program is killed again and again", async () => {
  const rows = 3_000;
  const { program, alpha, beta, before } = await twoShops(rows);
  let left = rows;
  for (let kill = 0; kill <= KILLS; kill += 1) {
    const server = await program.serve();
    // After the first kill, the platform repeats its request. This changes nothing, because the program knows the
    // request.
    if (kill < 2) expect((await postRemoval(server.url, ALPHA, "asked")).status).toBe(200);
    if (kill === KILLS) break;
    const aim = left - 150;
    await eventually(async () => (await customersOf(program, alpha)) < aim);
    await server.stop("SIGKILL");
    left = await customersOf(program, alpha);
    expect(left).toBeGreaterThan(0);
    expect(await rowsOfShop(program, alpha)).toMatchObject({ inbox: 1, platform_webhooks: 1 });
    // During the removal the shop is not served.
    const shown = await program.run(["shop", "show", ALPHA]);
    expect(shown).toEqual(failure(3, `there is no shop ${ALPHA}`));
    expect((await program.run(["key", "list", "--shop", ALPHA])).status).toBe(3);
  }
  await eventually(async () => (await shopRow(program, ALPHA)) === undefined);
  expect(await rowsOfShop(program, alpha)).toEqual({});
  // The attempts of the other shop went on. They were counted, and their failures began an alert.
  const { delivery_counts: _, alerts: __, ...others } = await rowsOfShop(program, beta);
  expect(others).toEqual(before);
  expect(await program.json<{ domain: string }[]>(["shop", "list"])).toMatchObject([{ domain: BETA }]);
});

test("a removal waits for the lock of another process, and leaves no text in the file", async () => {
  const { program, alpha } = await twoShops(500);
  const server = await program.serve();
  expect((await postRemoval(server.url, ALPHA, "asked")).status).toBe(200);
  const other = new Database(join(program.data, "sds.db"));
  other.run("PRAGMA busy_timeout = 5000");
  // Lock the database early, before all rows are removed.
  const left = other.query("SELECT 1 FROM customers WHERE shop_id = ?");
  await eventually(() => left.all(alpha).length < 450);
  other.run("BEGIN IMMEDIATE");
  // The program waits two seconds for a lock, then logs this and tries again later.
  await eventually(() => server.output.includes("cannot go on with the removal of a shop; nothing is lost"));
  other.run("COMMIT");
  other.close();
  await eventually(async () => (await shopRow(program, ALPHA)) === undefined);
  expect(await rowsOfShop(program, alpha)).toEqual({});
  expect(await server.stop()).toBe(0);
  expect([fileHas(program.data, "Lovelace"), fileHas(program.data, "Hopper")]).toEqual([false, true]);
});

test("a killed `shop remove` is finished by the next one, and until then the shop cannot be added", async () => {
  const { program, alpha, beta, before } = await twoShops(600);
  const { pid, exited } = await program.start(["shop", "remove", ALPHA, "--yes"]);
  await eventually(async () => (await customersOf(program, alpha)) < 550);
  process.kill(pid, "SIGKILL");
  await exited;
  expect(await customersOf(program, alpha)).toBeGreaterThan(0);
  expect(await program.run(["shop", "add", ALPHA])).toEqual(
    failure(
      1,
      `the shop ${ALPHA} is being removed: wait until it is gone; \`sds shop remove ${ALPHA} --yes\` finishes it`,
    ),
  );
  expect((await program.run(["shop", "remove", ALPHA])).status).toBe(2);
  expect(await program.run(["shop", "remove", ALPHA, "--yes"])).toMatchObject({
    status: 0,
    stderr: `Removed ${ALPHA}.\n`,
  });
  expect(await rowsOfShop(program, alpha)).toEqual({});
  expect(await rowsOfShop(program, beta)).toEqual(before);
  expect((await program.run(["shop", "remove", ALPHA, "--yes"])).status).toBe(3);
  expect((await program.run(["shop", "add", ALPHA])).status).toBe(0);
});
