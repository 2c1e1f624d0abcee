import { expect, test } from "bun:test";
import { temporaryFolder } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { customer, gid, reward } from "../support/records.ts";
import { platformSecretEnv, postPlatformWebhook } from "../support/removed-shop.ts";

const ALPHA = "alpha.myshopify.com";
const [OLD, PHONE] = ["bob@old.example", "+1 555 0100"];

test("a customers/redact removes its address and number from all texts, although the mirror does not know them", async () => {
  const program = await Program.withShop(platformSecretEnv(temporaryFolder()));
  // No program listens on this address, so the deliveries stay in the queue.
  await program.json(["webhook", "set", "--url", "https://127.0.0.1/", "--all-topics"]);
  const records = [
    customer(7, { email: "bob@new.example" }),
    reward(OLD, { customer: gid.customer(7), contact: OLD, call: [PHONE] }),
    reward("other", { customer: gid.customer(7), why: `for ${OLD}` }),
  ];
  await program.json(["import", "-", "--events"], { stdin: records.map((each) => JSON.stringify(each)).join("\n") });
  const server = await program.serve();
  const payload = { shop_domain: ALPHA, customer: { id: 7, email: OLD, phone: PHONE }, orders_to_redact: [] };
  const webhook = { shop: ALPHA, topic: "customers/redact", id: "asked", payload };
  expect((await postPlatformWebhook(server.url, webhook)).status).toBe(200);
  await eventually(async () => (await program.json<unknown[]>(["inbox", "list"])).length === 0);
  await server.stop();
  for (const text of [OLD, PHONE, "bob@new.example"]) expect([text, await program.holds(text)]).toEqual([text, false]);
  expect(await program.holds("other")).toBe(true);
});
