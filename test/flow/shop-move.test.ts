import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { failure, Program } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";
import { customer, order, subscription } from "../support/records.ts";
import { signed } from "../support/shop-sending.ts";

const ALPHA = "alpha.myshopify.com";
const ENV = { SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_RETRY_WAITS: "100ms,100ms,100ms" };

/** Two services. The shop alpha is in the first one, with a contract, a key and an endpoint. */
async function twoServices(receiver: Receiver) {
  const source = await Program.withShop(ENV);
  const target = new Program(undefined, ENV);
  await target.json(["shop", "add", "gamma.myshopify.com"]);
  await source.json(["webhook", "set", "--url", receiver.url, "--topics", "order.charged"]);
  const { key } = await source.json<{ key: string }>(["key", "create", "--label", "test"]);
  const { secret } = await source.json<{ secret: string }>(["intake", "secret"]);
  const url = await target.databaseUrl();
  const to = ["--to", url ?? `sqlite:${target.data}`];
  const keyFile = url === undefined ? [] : ["--to-key-file", `${target.data}/master.key`];
  return { source, target, key, secret, move: ["shop", "move", ALPHA, ...to, ...keyFile] };
}

const domainOf = (name: string) => `${name}.myshopify.com`;

const headers = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });

test("a shop moves to another database while both are served: no record and no webhook is lost or sent twice", async () => {
  const receiver = new Receiver();
  const { source, target, key, secret, move } = await twoServices(receiver);
  const [here, there] = [await source.serve(), await target.serve()];
  const post = (url: string, n: number) =>
    fetch(`${url}/intake`, signed(JSON.stringify(order(1, n, { status: "PAID" })), secret));
  expect((await fetch(`${here.url}/intake`, signed(JSON.stringify(subscription(1)), secret))).status).toBe(202);
  const first = await fetch(`${here.url}/api/v1/orders`, headers(key));
  const since = encodeURIComponent(first.headers.get("x-checkpoint") ?? "");

  const answers = new Set<number>();
  const exited = source.start(move).then((command) => command.exited);
  let [url, sent, sentThere] = [here.url, 0, 0];
  while (sentThere < 20) {
    const { status } = await post(url, sent + 1);
    answers.add(status);
    if (status === 202) sent += 1;
    if (status === 202 && url === there.url) sentThere += 1;
    // A refused sender tries the other service next.
    if (status !== 202) url = url === here.url ? there.url : here.url;
  }
  expect(await exited).toBe(0);
  expect([...answers].filter((status) => status !== 202 && status !== 503 && status !== 401)).toEqual([]);

  expect((await fetch(`${here.url}/api/v1/orders`, headers(key))).status).toBe(401);
  expect((await post(here.url, 1)).status).toBe(503);
  const changed = await fetch(`${there.url}/api/v1/orders?since=${since}&limit=250`, headers(key));
  expect(changed.status).toBe(200);
  const { data } = (await changed.json()) as { data: unknown[] };
  expect(data).toHaveLength(Math.min(sent, 250));
  const charged = () => receiver.received.filter(({ topic }) => topic === "order.charged");
  await eventually(() => charged().length >= sent);
  expect(new Set(charged().map(({ id }) => id)).size).toBe(sent);
  expect(new Set(charged().map(({ json }) => JSON.stringify(json.data))).size).toBe(sent);
  expect(charged()).toHaveLength(sent);
  expect(await source.json<unknown[]>(["shop", "list"])).toEqual([]);
});

test("a move is refused where nothing is, and to its own database, and changes nothing", async () => {
  const program = await Program.withShop(ENV);
  const folder = join(temporaryFolder(), "none");
  const missing = await program.run(["shop", "move", ALPHA, "--to", `sqlite:${folder}`]);
  expect(missing).toMatchObject({ status: 3, stderr: expect.stringContaining(`there is no data in ${folder}`) });
  expect(existsSync(folder)).toBe(false);
  const own = (await program.databaseUrl()) ?? `sqlite:${program.data}`;
  const keyFile = own.startsWith("sqlite") ? [] : ["--to-key-file", `${program.data}/master.key`];
  expect(await program.run(["shop", "move", ALPHA, "--to", own, ...keyFile])).toEqual(
    failure(1, "that is the database that the shop is to leave, or a copy of it: name another one"),
  );
  expect(await program.rows("shop_moves")).toEqual([]);
});

test("a move is refused with a master key that is not that of the other database, and says how to name that key", async () => {
  const { source, move } = await twoServices(new Receiver());
  const ownKey = `${source.data}/master.key`;
  expect(await source.run([...move, "--to-key-file", ownKey])).toEqual(
    failure(2, `${ownKey} is not the master key of the other database: name that with --to-key-file`),
  );
  expect(await source.rows("shop_moves")).toEqual([]);
});

test("a renamed shop moves by its present domain, and its first domain is refused", async () => {
  const { source, target, move } = await twoServices(new Receiver());
  await source.run(["shop", "rename", ALPHA, "delta.myshopify.com"]);
  expect(await source.run(move)).toEqual(failure(2, "the shop has another domain now: name it delta.myshopify.com"));
  expect(await source.run(move.map((word) => (word === ALPHA ? "delta.myshopify.com" : word)))).toMatchObject({
    status: 0,
  });
  expect(await target.json(["shop", "list"])).toMatchObject([{ domain: "delta.myshopify.com" }, {}]);
});

test("several shops move at once, and each has its rows and takes new ones", async () => {
  const { source, target, move } = await twoServices(new Receiver());
  const names = ["beta", "delta", "epsilon", "zeta"];
  for (const name of names) {
    await source.json(["shop", "add", domainOf(name)]);
    const records = Array.from({ length: 300 }, (_, n) => JSON.stringify(customer(n + 1))).join("\n");
    await source.run(["import", "-", "--shop", domainOf(name)], { stdin: records });
  }
  const moved = await Promise.all(
    names.map((name) => source.run(move.map((word) => (word === ALPHA ? domainOf(name) : word)))),
  );
  expect(moved.map(({ status }) => status)).toEqual(names.map(() => 0));
  for (const name of [...names, "gamma"])
    expect(
      await target.run(["webhook", "set", "--shop", domainOf(name), "--url", "https://a.example/", "--all-topics"]),
    ).toMatchObject({ status: 0 });
  for (const name of [...names, "gamma", ...names])
    expect(await target.run(["webhook", "test", "--shop", domainOf(name)])).toMatchObject({ status: 0 });
  expect(await target.rows("customers")).toHaveLength(4 * 300);
  expect(await source.json(["shop", "list"])).toMatchObject([{ domain: ALPHA }]);
});

test("a move that is killed goes on with the same command, and is given up with --cancel", async () => {
  const receiver = new Receiver();
  const { source, target, key, secret, move } = await twoServices(receiver);
  const here = await source.serve();
  const records = Array.from({ length: 250 }, (_, n) => customer(n + 1));
  expect((await fetch(`${here.url}/intake`, signed(JSON.stringify(records), secret))).status).toBe(202);
  const killed = await source.start(move);
  await eventually(async () => (await target.rows("shop_moves")).length > 0);
  process.kill(killed.pid, "SIGKILL");
  await killed.exited;
  expect((await source.run(["doctor"], { env: { SDS_PORT: "0" } })).stdout).toContain("has not ended");
  const giveUp = ["shop", "move", ALPHA, "--cancel-lost"];
  for (const flags of [["--cancel"], ["--to", "sqlite:/nowhere"], ["--to-file", "/nowhere"]])
    expect(await source.run([...giveUp, ...flags])).toEqual(failure(2, "use --cancel-lost without --to and --cancel"));
  const { status, stderr } = await target.run(giveUp);
  expect({ status, first: stderr.split("\n")[0] }).toEqual({ status: 0, first: `The move of ${ALPHA} is given up.` });
  expect(await source.run([...move, "--cancel"])).toMatchObject({ status: 0 });
  expect((await fetch(`${here.url}/api/v1/customers`, headers(key))).status).toBe(200);
  expect(await target.json<{ domain: string }[]>(["shop", "list"])).toMatchObject([{ domain: "gamma.myshopify.com" }]);
  expect(await source.run([...move, "--cancel"])).toEqual(
    failure(2, `no move of ${ALPHA} has begun: there is nothing to cancel`),
  );
  expect(await source.json(move)).toEqual({ domain: ALPHA });
  // The command may be repeated.
  expect(await source.json(move)).toEqual({ domain: ALPHA });
  expect(await source.run(["shop", "show", ALPHA])).toMatchObject({ status: 3 });
  expect(await target.json(["shop", "show", ALPHA])).toMatchObject({ domain: ALPHA });
});
