import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { TOKENS } from "../conformance/fixtures.ts";
import { START, temporaryFolder } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { signedIn } from "../support/signed-in.ts";
import { type SmtpTestServer, smtpServer } from "../support/smtp-server.ts";

const tls = (name: string) => Bun.file(join(import.meta.dir, "../support/tls", name)).text();
const ADDRESS = "ana@example.com";

/** Signs in a visitor. The program sends its e-mails to a server on this machine. */
async function withMail(server: SmtpTestServer, scheme = "smtp") {
  const file = join(temporaryFolder(), "smtp");
  const setServer = ({ port }: SmtpTestServer) =>
    writeFileSync(file, `${scheme}://sds:hush%20word@127.0.0.1:${port}/?from=sds@example.com\n`);
  setServer(server);
  const all = await signedIn({
    SDS_SMTP_URL_FILE: file,
    SDS_PUBLIC_URL: "https://sds.example.com",
    SDS_PLATFORM_CLIENT_ID: "client1",
  });
  return { ...all, file, setServer };
}

/** Returns the mail's text without the soft line breaks of quoted-printable. */
function plain(text = ""): string {
  return text.replaceAll("=\n", "").replaceAll("=3D", "=");
}

function linkIn(text: string, verb: string): string {
  return new RegExp(`https://sds\\.example\\.com(/alerts/${verb}\\?token=[\\w-]+)`).exec(text)?.[1] ?? "";
}

test("an address is confirmed by a link, gets an e-mail of each alert and its end, and ends them by a link", async () => {
  const server = await smtpServer();
  const { all, store, shop, html, post } = await withMail(server);
  const { teller } = all.app;
  expect((await post("/admin/alerts", { address: ADDRESS })).status).toBe(303);
  expect(await html("/admin/alerts")).toContain("Waits for its confirmation");
  teller.wake();
  await eventually(() => server.mails.length === 1);
  const asked = plain(server.mails[0]?.text);
  expect(server.mails[0]).toMatchObject({ from: "sds@example.com", to: [ADDRESS] });
  expect(asked).toContain("Subject: Confirm alerts for alpha.myshopify.com");
  const confirm = linkIn(asked, "confirm");

  // Mail scanners open the link. This must change nothing.
  const page = await all.request(confirm);
  expect([page.status, page.headers.get("referrer-policy")]).toEqual([200, "no-referrer"]);
  expect(await page.text()).toContain("of alpha.myshopify.com");
  expect((await store.alerts.addresses(shop.id))[0]?.confirmedAt).toBeNull();
  expect((await all.request(confirm, { method: "POST" })).status).toBe(200);
  expect(await html("/admin/alerts")).toContain("Confirmed");

  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await store.connections.setTrouble(shop.id, "the shop is frozen (HTTP 402); wait", START);
  teller.wake();
  await eventually(() => server.mails.length === 2);
  const alert = plain(server.mails[1]?.text);
  expect(alert).toContain("Subject: Needs you: alpha.myshopify.com");
  expect(alert).toContain(
    "Shopify has refused the app's connection since 2026-03-01 12:00 UTC. Shopify has frozen the shop",
  );
  expect(alert).toContain("https://sds.example.com/admin/data");
  expect(alert).toContain("List-Unsubscribe-Post: List-Unsubscribe=One-Click");
  await store.connections.setTrouble(shop.id, null, START);
  teller.wake();
  await eventually(() => server.mails.length === 3);
  expect(plain(server.mails[2]?.text)).toContain("Shopify accepts the app's connection again.");

  const end = linkIn(alert, "end");
  expect((await all.request(end)).status).toBe(200);
  expect(await store.alerts.addresses(shop.id)).toHaveLength(1);
  const body = "List-Unsubscribe=One-Click";
  expect((await all.request(end, { method: "POST", body })).status).toBe(200);
  expect(await store.alerts.addresses(shop.id)).toEqual([]);
  expect((await all.request(confirm, { method: "POST" })).status).toBe(404);
  expect((await all.request(end)).status).toBe(404);
  const audited = (await store.audit.list(shop.id, {}, {}, 3)).map(({ action, subject }) => `${action} ${subject}`);
  expect(audited).toEqual([
    "alert_address.removed a…@example.com",
    "alert_address.confirmed a…@example.com",
    "alert_address.added a…@example.com",
  ]);
  const log = all.logged.join("");
  for (const secret of [ADDRESS, "hush", confirm.split("=")[1] ?? ""]) expect(log).not.toContain(secret);
});

test("an alert of a shop that installed the app links to the platform's admin", async () => {
  const server = await smtpServer();
  const { all, store, shop, post } = await withMail(server);
  await post("/admin/alerts", { address: ADDRESS });
  all.app.teller.wake();
  await eventually(() => server.mails.length === 1);
  await all.request(linkIn(plain(server.mails[0]?.text), "confirm"), { method: "POST" });
  await store.connections.connect(shop.id, "refresh", TOKENS, [], START);
  await store.connections.setTrouble(shop.id, "the shop is frozen (HTTP 402); wait", START);
  all.app.teller.wake();
  await eventually(() => server.mails.length === 2);
  expect(plain(server.mails[1]?.text)).toContain("https://alpha.myshopify.com/admin/apps/client1/app/data");
});

test("wrong links open nothing", async () => {
  const { all } = await signedIn();
  for (const query of ["", "?token=", "?token=x", `?token=${"a".repeat(43)}`, `?token=${"a".repeat(43)}%00`])
    for (const method of ["GET", "POST"])
      expect((await all.request(`/alerts/confirm${query}`, { method })).status).toBe(404);
  expect((await all.request(`/alerts/end?token=${"a".repeat(43)}`)).status).toBe(404);
});

test("an e-mail that the server refuses is repeated, and its answer is not logged, because it may name somebody", async () => {
  const server = await smtpServer();
  server.recipientAnswer = `550 <${ADDRESS}> is unknown`;
  const { all, post } = await withMail(server);
  await post("/admin/alerts", { address: ADDRESS });
  all.app.teller.wake();
  const logged = (text: string) => all.logged.some((line) => line.includes(text));
  await eventually(() => logged("an alert's e-mail failed, and is repeated"));
  expect(logged("the e-mail was not sent: EENVELOPE (the mail server answered 550)")).toBeTrue();
  expect(logged(ADDRESS)).toBeFalse();
  server.recipientAnswer = "250 ok";
  all.clock.ms += 60_000;
  all.app.teller.wake();
  await eventually(() => server.mails.length === 1);
});

test("an e-mail goes to the mail server that the file names at that time, and waits while the file is wrong", async () => {
  const [former, present] = [await smtpServer(), await smtpServer()];
  const { all, post, file, setServer } = await withMail(former);
  writeFileSync(file, "smtp://sds:hush%20word@");
  await post("/admin/alerts", { address: ADDRESS });
  all.app.teller.wake();
  await eventually(() => all.logged.some((line) => line.includes("SDS_SMTP_URL_FILE holds no address like")));
  expect(all.logged.join("\n")).not.toContain("hush");
  setServer(present);
  all.clock.ms += 60_000;
  all.app.teller.wake();
  await eventually(() => present.mails.length === 1);
  expect(former.mails).toEqual([]);
});

test("a mail server whose certificate nobody vouches for gets no login and no e-mail", async () => {
  const server = await smtpServer({ key: await tls("valid.key"), cert: await tls("valid.pem") });
  const { all, post } = await withMail(server, "smtps");
  await post("/admin/alerts", { address: ADDRESS });
  all.app.teller.wake();
  await eventually(() => all.logged.some((line) => line.includes("an alert's e-mail failed, and is repeated")));
  expect([server.lines, server.mails]).toEqual([[], []]);
});

test("addresses that are none, known or too many are refused, and are removed by hand", async () => {
  const { store, shop, html, post } = await withMail(await smtpServer());
  const bad = [
    "",
    "ana",
    "ana@localhost",
    "a@b.example, c@d.example",
    "a@b.example\r\nBcc: c@d.example",
    '"a"@b.example',
    "a%c.example@b.example",
    "c.example!a@b.example",
    "=?utf-8?q?a=40c.example?=@b.example",
    "|a@b.example",
  ];
  for (const address of [...bad, `${"a".repeat(250)}@b.example`]) {
    const answer = await post("/admin/alerts", { address });
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining("not an e-mail address")]);
  }
  for (const n of [1, 2, 3, 4, 5]) await post("/admin/alerts", { address: `a${n}@example.com` });
  expect((await post("/admin/alerts", { address: "a1@example.com" })).status).toBe(422);
  expect((await post("/admin/alerts", { address: "a6@example.com" })).status).toBe(422);
  const [first] = await store.alerts.addresses(shop.id);
  await post(`/admin/alerts/remove/${first?.number}`);
  expect((await store.alerts.addresses(shop.id)).map(({ address }) => address)).not.toContain("a1@example.com");
  expect(await html("/admin/alerts")).toContain("a1@example.com is removed.");
});

test("without a mail server, the page says so and takes no address", async () => {
  const { html, post } = await signedIn();
  expect(await html("/admin/alerts")).toContain("This service sends no e-mails at present.");
  expect((await post("/admin/alerts", { address: ADDRESS })).status).toBe(409);
});
