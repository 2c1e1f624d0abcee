import { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../test/support/eventually.ts";
import type { PlatformShop } from "../../test/support/platform/shop.ts";
import type { SignedPost } from "../../test/support/stored-database.ts";
import { begin, ndjson, type Remembered, type World } from "./begin.ts";
import type { OldProgram, Server } from "./program.ts";
import { ALPHA, BETA, GAMMA, news, occurrences } from "./shops.ts";

/** Short waits between attempts, so that a delivery is soon dead. */
const QUICK = { SDS_RETRY_WAITS: "10ms,10ms,10ms,10ms" };
/** After this many failed attempts a platform webhook stays in the inbox as failed. */
const INBOX_ATTEMPTS = 11;
/** How far the clock is set forward: longer than the longest wait between two attempts at a platform webhook. */
const SET_FORWARD_MS = 9 * 3_600_000;
/** Names of the platform operations that read a contract, in all versions of sds. */
const CONTRACT_READS = ["Nodes", "ContractWithCycles"];
/** Makes a load use a bulk operation for orders, although the shop has few. */
const MANY_ORDERS = JSON.stringify({ data: { ordersCount: { count: 10_000 } } });

/** Runs the life of two shops, until every table has rows in every state. */
export async function live(world: World): Promise<Remembered> {
  const remembered = await begin(world);
  await serveAndEnd(world, remembered);
  await failInInbox(world);
  await world.program.run(["webhook", "rotate-secret", "--overlap", "30d", "--yes", "--shop", ALPHA]);
  await serveAndFail(world, remembered);
  await serveAndCrash(world, remembered);
  await leaveForms(world, remembered);
  await leaveWaiting(world);
  await leaveStaged(world);
  leaveBranches(world);
  const { url } = await world.program.json<{ url: string }>(["admin", "link", "--shop", ALPHA]);
  return { ...remembered, signInPath: pathOf(url) };
}

/**
 * Leaves an interrupted `sds sync`, the orders that it staged, and the connection's trouble. A later `serve` would
 * finish the load.
 */
async function leaveStaged({ program, platform }: World): Promise<void> {
  platform.fault = ({ operation }) => {
    if (operation === "OrdersCount") return { status: 200, body: MANY_ORDERS };
    return operation === "AllContracts" ? { status: 401 } : undefined;
  };
  await program.fail(["sync", BETA]);
  platform.fault = () => undefined;
}

/** Adds the branches that `sds copy` brings from a PostgreSQL database after a failover. SQLite begins no branches. */
function leaveBranches({ program }: World): void {
  const db = new Database(join(program.data, "sds.db"), { readwrite: true, create: false });
  db.run("INSERT INTO former_branches (shop_id, branch, change_count) SELECT id, '', change_count FROM shops");
  db.run("UPDATE shops SET branch = 'b4d455b8c1d64e0f9a1b2c3d4e5f6071'");
  // Each shop seems to come from another database. One more shop has moved away.
  db.run("INSERT INTO checkpoint_origins SELECT id, 'move_1', randomblob(32), 7 FROM shops");
  db.run("INSERT INTO shop_moves (move, state, domain, first_domain) VALUES ('move_2', 'moved', 'gone', 'gone')");
  db.close(true);
}

/** Finishes every queued delivery. Each one is delivered, dead after five attempts, or delivered by a retry by hand. */
async function serveAndEnd({ program, platform, receiver }: World, remembered: Remembered): Promise<void> {
  const server = await program.serve(QUICK);
  receiver.answer = (topic) => new Response(null, { status: topic === "order.failed" ? 500 : 200 });
  platform.fault = ({ operation }) => (operation === "FlowTrigger" ? { status: 503 } : undefined);
  for (const { domain } of remembered.shops) {
    await intake(server, remembered, domain, news(100));
    remembered.taken.push(await intake(server, remembered, domain, occurrences(100)));
  }
  const alpha = platform.shop(ALPHA);
  const [contract = "", ...contracts] = alpha.ids("contract");
  const [person = "", another = ""] = alpha.ids("customer");
  alpha.pause(contracts[0] ?? "");
  alpha.cancel(contract);
  alpha.failAttempt(alpha.startAttempt(contracts[1] ?? "", 3));
  alpha.updateCustomer(another, { email: "another@example.com", lastName: "Changed" });
  const known = {
    type: "reward",
    source: "loyalty",
    customer: person,
    e_mail: "customer-0@example.com",
    said: "thank you, Ada",
  };
  remembered.taken.push(await intake(server, remembered, ALPHA, [{ ...known, id: "of-a-person" }]));
  alpha.redactCustomer(person);
  remembered.taken.push(...(await sendAll({ platform }, alpha, server)));
  await program.run(["webhook", "test", "--shop", ALPHA, "--topic", "order.recovered"]);
  await ended(program);
  await eventually(async () => (await inbox(program)).length === 0);
  platform.fault = () => undefined;
  receiver.answer = () => new Response();
  for (const kind of ["webhook", "trigger"]) {
    const [dead] = (await deliveries(program)).filter((each) => each.kind === kind && each.status === "dead");
    await program.run(["delivery", "retry", dead?.id ?? "", "--shop", ALPHA]);
  }
  await ended(program);
  await server.stop();
}

/** Sends a platform webhook that can never be processed, and waits for its last attempt. */
async function failInInbox({ program, platform, clock }: World): Promise<void> {
  const alpha = platform.shop(ALPHA);
  platform.fault = ({ operation }) => (CONTRACT_READS.includes(operation) ? { status: 500 } : undefined);
  alpha.activate(alpha.ids("contract")[2] ?? "");
  let server = await program.serve(QUICK);
  await sendAll({ platform }, alpha, server);
  for (let attempt = 1; attempt <= INBOX_ATTEMPTS; attempt += 1) {
    await eventually(async () => (await inbox(program)).every(({ attempts }) => attempts >= attempt));
    await server.stop();
    clock.shiftMs += SET_FORWARD_MS;
    if (attempt < INBOX_ATTEMPTS) server = await program.serve(QUICK);
  }
}

/**
 * Makes a webhook, a trigger and a platform webhook fail once, so that they wait for the next attempt. Sends platform
 * webhooks that name another version of the API. Also sends the webhook of a shop that uninstalls the app. At the end,
 * signs in to the settings page.
 */
async function serveAndFail({ program, platform, receiver }: World, remembered: Remembered): Promise<void> {
  const server = await program.serve();
  receiver.answer = () => new Response(null, { status: 503 });
  platform.fault = ({ operation }) =>
    operation === "FlowTrigger" || CONTRACT_READS.includes(operation) ? { status: 502 } : undefined;
  await intake(server, remembered, ALPHA, news(101));
  remembered.taken.push(await intake(server, remembered, ALPHA, occurrences(101)));
  const alpha = platform.shop(ALPHA);
  alpha.activate(alpha.ids("contract")[3] ?? "");
  alpha.requestData(alpha.ids("customer")[0] ?? "");
  platform.versions.webhooks = "2026-10";
  remembered.taken.push(...(await sendAll({ platform }, alpha, server)));
  const gamma = platform.shop(GAMMA);
  gamma.uninstall();
  await sendAll({ platform }, gamma, server);
  const { url } = await program.json<{ url: string }>(["admin", "link", "--shop", ALPHA]);
  const body = new URL(url).searchParams;
  const signedIn = await fetch(`${server.url}/admin/sign-in`, { method: "POST", body, redirect: "manual" });
  remembered.sessionCookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  for (const { key } of remembered.shops)
    await fetch(`${server.url}/api/v1/customers`, { headers: { Authorization: `Bearer ${key}` } });
  await eventually(async () => !(await deliveries(program)).some(({ status }) => status === "pending"));
  await eventually(async () => (await inbox(program)).every(({ attempts }) => attempts > 0));
  await eventually(() => hasUninstalled(program));
  await server.stop();
}

/** Kills the program in the middle of an attempt: the claim and the program's address stay in the database. */
async function serveAndCrash({ program, receiver }: World, remembered: Remembered): Promise<void> {
  const server = await program.serve();
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const { promise: never } = Promise.withResolvers<Response>();
  receiver.answer = () => {
    resolve();
    return never;
  };
  await intake(server, remembered, BETA, news(102));
  await asked;
  await server.stop("SIGKILL");
}

/**
 * Opens a wrong sign-in link, then makes a key in the settings and adds an e-mail address for alerts. Stops the program
 * before the count of wrong links expires, before a page shows the key, and before a mail server takes the e-mail.
 */
async function leaveForms({ program }: World, { sessionCookie }: Remembered): Promise<void> {
  const mailServer = join(program.data, "..", "smtp-url");
  writeFileSync(mailServer, "smtp://127.0.0.1:9/?from=sds@example.com", { mode: 0o600 });
  const server = await program.serve({ SDS_SMTP_URL_FILE: mailServer, SDS_PUBLIC_URL: "https://sds.example.com" });
  const wrong = new URLSearchParams({ token: "A".repeat(43) });
  await fetch(`${server.url}/admin/sign-in`, { method: "POST", body: wrong });
  await postForm(server, "/admin/keys", sessionCookie, { label: "Never shown" });
  await postForm(server, "/admin/alerts", sessionCookie, { address: "ana@example.com" });
  await server.stop();
}

async function postForm(server: Server, path: string, cookie: string, fields: Record<string, string>): Promise<void> {
  const headers = { Cookie: cookie };
  const page = await (await fetch(server.url + path, { headers })).text();
  const [csrf = "", once = ""] = ["csrf", "once"].map(
    (name) => new RegExp(`name="${name}" value="([^"]+)"`).exec(page)?.[1],
  );
  const body = new URLSearchParams({ csrf, once, ...fields });
  const posted = await fetch(server.url + path, { method: "POST", headers, body, redirect: "manual" });
  if (posted.status !== 303) throw new Error(`the form of ${path} was answered with ${posted.status}`);
}

/** Queues events while `serve` does not run. */
async function leaveWaiting({ program }: World): Promise<void> {
  for (const shop of [ALPHA, BETA])
    await program.run(["import", "-", "--events", "--shop", shop], ndjson([...news(103), ...occurrences(103)]));
}

async function intake(server: Server, { shops }: Remembered, domain: string, records: object[]): Promise<SignedPost> {
  const body = JSON.stringify(records);
  const secret = shops.find((shop) => shop.domain === domain)?.intakeSecret ?? "";
  const signature = new Bun.CryptoHasher("sha256", secret).update(body).digest("hex");
  return post(server, {
    path: "/intake",
    body,
    headers: { "X-Service-Shop": domain, "X-Service-Signature": `sha256=${signature}` },
  });
}

/** Posts the platform webhooks that the stand-in has to send. */
async function sendAll(
  { platform }: Pick<World, "platform">,
  shop: PlatformShop,
  server: Server,
): Promise<SignedPost[]> {
  const sent: SignedPost[] = [];
  for (const webhook of shop.outgoing.splice(0))
    sent.push(await post(server, { path: "/platform/webhooks", ...platform.signed(webhook) }));
  return sent;
}

async function post(server: Server, request: SignedPost): Promise<SignedPost> {
  const response = await fetch(server.url + request.path, {
    method: "POST",
    body: request.body,
    headers: request.headers,
  });
  if (!response.ok) throw new Error(`${request.path} answered ${response.status}: ${await response.text()}`);
  return request;
}

function deliveries(program: OldProgram): Promise<{ id: string; kind: string; status: string }[]> {
  return program.json(["delivery", "list", "--limit", "1000", "--shop", ALPHA]);
}

function ended(program: OldProgram): Promise<boolean> {
  return eventually(async () =>
    (await deliveries(program)).every(({ status }) => status === "delivered" || status === "dead"),
  );
}

function inbox(program: OldProgram): Promise<{ attempts: number }[]> {
  return program.json(["inbox", "list", "--shop", ALPHA]);
}

async function hasUninstalled(program: OldProgram): Promise<boolean> {
  const shown = await program.json<{ platform: { uninstalledAt: string | null } }>(["shop", "show", GAMMA]);
  return shown.platform.uninstalledAt !== null;
}

function pathOf(url: string): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}
