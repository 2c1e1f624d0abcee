import { describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { readRows } from "../support/api-shop.ts";
import { type PageBody, temporaryFolder } from "../support/app.ts";
import { Program } from "../support/program.ts";
import { exchange } from "../support/raw-http.ts";
import { customer, gid, order, subscription } from "../support/records.ts";
import { DOMAIN, signed } from "../support/shop-sending.ts";

async function shopWithKey() {
  const program = await Program.withShop();
  const { key, id } = await program.json<{ key: string; id: string }>(["key", "create", "--label", "Warehouse"]);
  const { secret } = await program.json<{ secret: string }>(["intake", "secret"]);
  return { program, key, id, secret };
}

test("a change comes in by intake and by import, and is read by key", async () => {
  const { program, key, secret } = await shopWithKey();
  const server = await program.serve();

  const body = [customer(1, { email: "ada@example.com" }), subscription(1)]
    .map((record) => JSON.stringify(record))
    .join("\n");
  const response = await fetch(`${server.url}/intake`, signed(body, secret));
  expect({ status: response.status, body: await response.json() }).toEqual({ status: 202, body: { accepted: 2 } });
  const imported = await program.json(["import", "-"], { stdin: `${JSON.stringify(order(1, 1))}\n` });
  expect(imported).toEqual({ read: 1, changed: 1, events: 0 });

  expect(await readRows(server.url, key, "customers")).toMatchObject([
    { shopifyId: gid.customer(1), email: "ada@example.com", subscriptionCount: 1 },
  ]);
  expect(await readRows(server.url, key, "subscriptions")).toMatchObject([
    { shopifyId: gid.contract(1), cyclesCompleted: 1 },
  ]);
  expect(await readRows(server.url, key, "orders")).toMatchObject([{ cycleNumber: 1, totalCents: 1900 }]);
  expect(await server.stop()).toBe(0);
});

test("a key that the command line revoked is refused at the next request", async () => {
  const { program, key, id } = await shopWithKey();
  const server = await program.serve();
  const status = async () =>
    (await fetch(`${server.url}/api/v1/orders`, { headers: { Authorization: `Bearer ${key}` } })).status;
  expect(await status()).toBe(200);
  await program.json(["key", "revoke", id]);
  expect(await status()).toBe(401);
});

test("a plan that the command line changed counts for the next request", async () => {
  const { program, key } = await shopWithKey();
  const server = await program.serve();
  await program.json(["shop", "set", DOMAIN, "--plan", "free"]);
  expect((await fetch(`${server.url}/api/v1/orders`, { headers: { Authorization: `Bearer ${key}` } })).status).toBe(
    403,
  );
});

test("the last use of a key is shown after the first request, and a later use is written at shutdown", async () => {
  const { program, key } = await shopWithKey();
  const lastUsedAt = async () =>
    (await program.json<{ lastUsedAt: string | null }[]>(["key", "list"]))[0]?.lastUsedAt ?? "";
  const server = await program.serve();
  await readRows(server.url, key, "orders");
  const first = await lastUsedAt();
  expect(first).toMatch(/^\d{4}-.*Z$/);
  await readRows(server.url, key, "orders");
  expect(await lastUsedAt()).toBe(first);
  await server.stop();
  expect((await lastUsedAt()) > first).toBe(true);
});

describe("on a socket", () => {
  test("a hostile request never gets a 500 or an HTML page, and the next request is answered", async () => {
    const server = await new Program().serve();
    const requests = [
      "GET /api/v1/orders HTTP/1.1\r\nHost: a/b?c\r\n\r\n",
      "GET /api/v1/orders HTTP/1.1\r\nHost: \r\n\r\n",
      "GET /api/v1/../v1/orders HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET //api/v1/orders HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET http://other/api/v1/orders HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /api/v1/orders?cursor=%ff%fe%00 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
      "GET /api/v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
      `GET /api/v1/orders?limit=${"9".repeat(8000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      `GET /${"a".repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      "POST /intake HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}",
      "POST /intake HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n",
      "POST /intake HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "BREW /api/v1/orders HTTP/1.1\r\nHost: x\r\n\r\n",
      "not http at all\r\n\r\n",
    ];
    for (const request of requests) {
      const answer = await exchange(server.url, request, { hangUp: true });
      expect(answer).not.toMatch(/^HTTP\/1\.1 5(?!05)/);
      expect(answer).not.toMatch(/<html/i);
    }
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  });

  test("a body above 1 MiB is 413 in JSON, and a body of 1 MiB is read", async () => {
    const { program, secret } = await shopWithKey();
    const server = await program.serve();
    const send = async (size: number) =>
      fetch(`${server.url}/intake`, signed(JSON.stringify(customer(1)).padEnd(size), secret));
    expect((await send(1024 * 1024)).status).toBe(202);
    const huge = fetch(`${server.url}/intake`, { method: "POST", body: new Uint8Array(70 << 20) });
    for (const answer of await Promise.all([send(1024 * 1024 + 1), huge]))
      expect([answer.status, await answer.json()]).toMatchObject([413, { error: { code: "too_large" } }]);
  });

  test("a stalled upload does not block a stop", async () => {
    const server = await new Program().serve();
    const { hostname, port } = new URL(server.url);
    const signature = `X-Service-Shop: ${DOMAIN}\r\nX-Service-Signature: sha256=${"0".repeat(64)}`;
    const socket = connect(Number(port), hostname, () =>
      socket.write(`POST /intake HTTP/1.1\r\nHost: x\r\n${signature}\r\nContent-Length: 1000\r\n\r\n{}`),
    );
    socket.on("error", () => undefined);
    await new Promise((resolve) => socket.once("connect", resolve));
    await (await fetch(`${server.url}/healthz`)).text();
    const began = performance.now();
    expect(await server.stop()).toBe(0);
    // The server gives up a stalled upload after half a minute. The stop did not wait for that.
    expect(performance.now() - began).toBeLessThan(25_000);
    socket.destroy();
  });
});

test("each acknowledged record survives kill -9, several times in a row", async () => {
  const { program, key, secret } = await shopWithKey();
  const acknowledged = new Set<string>();
  let n = 0;
  for (let round = 0; round < 4; round += 1) {
    const server = await program.serve();
    let killed = false;
    const clients = Array.from({ length: 8 }, async () => {
      while (!killed) {
        n += 1;
        const record = customer(n);
        const response = await fetch(`${server.url}/intake`, signed(JSON.stringify(record), secret)).catch(
          () => undefined,
        );
        if (response?.status === 202) acknowledged.add(record.shopifyId);
        if (acknowledged.size > 40 * (round + 1) && !killed) {
          killed = true;
          await server.stop("SIGKILL");
        }
      }
    });
    await Promise.all(clients);
  }
  const server = await program.serve();
  const kept = new Set((await readRows(server.url, key, "customers")).map(({ shopifyId }) => shopifyId));
  expect(acknowledged.size).toBeGreaterThan(160);
  expect(acknowledged.isSubsetOf(kept)).toBe(true);
});

test("a second program on the same port does not start, and says why", async () => {
  const program = new Program();
  const server = await program.serve();
  const { status, stderr } = await new Program().run(["serve", "--port", new URL(server.url).port]);
  expect(status).toBe(1);
  expect(stderr).toMatch(/^sds: cannot listen on 127\.0\.0\.1 port \d+: another program uses the port: stop it, or/);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

test("the demo loads a shop from its platform, prints a key, a link and commands that work, and cleans up", async () => {
  const program = new Program();
  const temporary = join(temporaryFolder(), "it's here #1");
  mkdirSync(temporary);
  const server = await program.serve(["demo", "--port", "0"], { TMPDIR: temporary });
  const { output } = server;
  const lines = [...output.matchAll(/^ {2}(curl .*)$/gm)].map(([, line]) => line ?? "");
  expect(lines).toHaveLength(3);
  for (const line of lines) {
    const curl = Bun.spawn(["sh", "-c", `${line} -sS`], { stdout: "pipe" });
    expect((JSON.parse(await curl.stdout.text()) as PageBody).data).toHaveLength(3);
  }
  const key = /API key: (\S+)/.exec(output)?.[1] ?? "";
  const commands = [...output.matchAll(/^ {2}(\S.* --data .*)$/gm)].map(([, line]) => line ?? "");
  const [keys, synced, status, link] = commands.map((line) => Bun.spawnSync(["sh", "-c", line]).stdout.toString());
  expect(keys).toContain(key.slice(0, 15));
  expect(status).toMatch(/^demo\.myshopify\.com .* \d{4}-\d\d-\d\dT\S+$/m);
  expect(synced).toContain("150 customers");
  expect(link).toStartWith(`${server.url}/admin/sign-in?token=`);
  const page = await fetch(/Settings page: (\S+)/.exec(output)?.[1] ?? "");
  expect(await page.text()).toContain('id="open"');
  const statuses = async (resource: string) =>
    new Set((await readRows(server.url, key, resource)).map(({ status }) => status));
  expect((await statuses("subscriptions")).size).toBe(5);
  expect((await statuses("orders")).size).toBe(6);
  const folder = /Its data is in (.*)\. Every/.exec(output)?.[1] ?? "";
  expect(folder).toStartWith(temporary);
  expect(await Bun.file(`${folder}/sds.db`).exists()).toBe(true);
  expect(await server.stop("SIGINT")).toBe(0);
  expect(await Bun.file(`${folder}/sds.db`).exists()).toBe(false);
});
