import { expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { subscription } from "../support/records.ts";
import { shopSending } from "../support/shop-sending.ts";
import { smtpServer } from "../support/smtp-server.ts";

const ADDRESS = "ana@example.com";

test("a dead delivery is told to operator and merchant once, through a kill, and its end once", async () => {
  const mail = await smtpServer();
  const file = join(temporaryFolder(), "smtp");
  writeFileSync(file, `smtp://127.0.0.1:${mail.port}/?from=sds@example.com`);
  chmodSync(file, 0o600);
  const posts: string[] = [];
  const chat = { isUp: false };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { text } = (await request.json()) as { text: string };
      if (chat.isUp) posts.push(text);
      return new Response("", { status: chat.isUp ? 200 : 503 });
    },
  });
  afterTest(() => server.stop(true));
  const { program, receiver, post, entries } = await shopSending({
    SDS_RETRY_WAITS: "20ms",
    SDS_SMTP_URL_FILE: file,
    SDS_ALERT_URL: `http://127.0.0.1:${server.port}/hush`,
  });
  const store = await program.openStore();
  const [shop] = await store.shops.list();
  const shopId = shop?.id ?? 0;
  expect(await store.alerts.addAddress(shopId, ADDRESS, Date.now())).toBe("added");
  const first = await program.serve();
  await eventually(() => mail.mails.length === 1);
  const text = (mail.mails[0]?.text ?? "").replaceAll("=\n", "").replaceAll("=3D", "=");
  const confirm = /\/alerts\/confirm\?token=[\w-]+/.exec(text)?.[0] ?? "";
  expect((await fetch(`${first.url}${confirm}`, { method: "POST" })).status).toBe(200);

  receiver.answer = () => new Response(null, { status: 500 });
  await post(first.url, subscription(1));
  await eventually(async () => (await entries("--status", "dead")).length === 1);
  await eventually(() => mail.mails.length === 2);
  expect(mail.mails[1]?.text).toContain("Subject: Needs you: alpha.myshopify.com");
  await eventually(async () => (await program.rows("alert_notices")).some(({ attempts }) => Number(attempts) === 1));
  await first.stop("SIGKILL");

  chat.isUp = true;
  await program.serve();
  receiver.answer = () => new Response();
  await program.json(["delivery", "retry", "--dead", "--yes"]);
  await eventually(() => mail.mails.length === 3);
  expect(mail.mails[2]?.text).toContain("Subject: Well again: alpha.myshopify.com");
  await eventually(() => posts.length >= 1);
  expect(posts[0]).toStartWith("alpha.myshopify.com: no webhook is dead now\n");
  // The first post waits a minute for its second attempt, and is still queued.
  await eventually(async () => (await program.rows("alert_notices")).length === 1);
  expect(mail.mails).toHaveLength(3);
});
