import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { failure, PROGRAM, Program } from "../support/program.ts";
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

const ADA = customer(7, { email: "ada@example.com", firstName: "Ada", lastName: "Lovelace", creditsCents: 5 });
const asLines = (records: unknown[]) => `${records.map((each) => JSON.stringify(each)).join("\n")}\n`;

test("customer redact does what customers/redact does, for a shop that is not connected", async () => {
  const program = await Program.withShop();
  const message = `Well done, ada lovelace! We wrote to ${OLD} and called 1 (555) 0100.`;
  const records = [ADA, reward("r", { customer: gid.customer(7), message })];
  await program.json(["import", "-"], { stdin: asLines(records) });
  const args = ["customer", "redact", "7", "--email", OLD, "--phone", PHONE];
  const question = `this removes the personal data of ${gid.customer(7)} at ${ALPHA} for good`;
  expect(await program.run(args)).toEqual(failure(2, `${question}: add --yes to do it`));
  expect(await program.answer(args, "n\n")).toMatchObject({ status: 2 });
  expect(await program.json(["customer", "export", "7"])).toMatchObject({ customer: { email: "ada@example.com" } });

  const { status, shown } = await program.answer(args, "y\n");
  expect([status, shown]).toEqual([0, expect.stringContaining(`Redacted ${gid.customer(7)}.`)]);
  const exported = await program.json<{ customer: object; rewards: object[] }>(["customer", "export", "7"]);
  expect(exported.customer).toMatchObject({ email: null, firstName: null, lastName: null, creditsCents: 5 });
  expect(exported.rewards).toMatchObject([
    { message: "Well done, [redacted]! We wrote to [redacted] and called [redacted]." },
  ]);
  for (const text of ["ada@example.com", OLD, "ovelace"])
    expect([text, await program.holds(text)]).toEqual([text, false]);

  expect(await program.json([...args, "--yes"])).toEqual({ redacted: gid.customer(7) });
  expect(await program.run(["customer", "redact", "8", "--yes"])).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("was not in the mirror"),
  });
  expect(await program.run(["customer", "redact", "7", "--email", "ada", "--yes"])).toMatchObject({ status: 2 });
});

test("a redaction during an import, and a repeat of the import after a kill, bring nothing back", async () => {
  const program = await Program.withShop();
  const others = (first: number) => Array.from({ length: 1_000 }, (_, n) => customer(first + n));
  const file = join(temporaryFolder(), "customers.ndjson");
  writeFileSync(file, asLines([...others(1_000), ADA]));
  const importStdin = async <In extends "pipe" | Bun.BunFile>(stdin: In) => {
    const [command = "", ...args] = PROGRAM;
    const options = { env: await program.environment(), stdout: "pipe", stderr: "pipe" } as const;
    const child = Bun.spawn([command, ...args, "import", "-", "--json"], { ...options, stdin });
    afterTest(() => child.kill("SIGKILL"));
    return child;
  };
  const started = async (first: number) => {
    const child = await importStdin("pipe");
    child.stdin.write(asLines(others(first)));
    await child.stdin.flush();
    await eventually(async () => (await program.rows("customers")).length >= first);
    return child;
  };
  const killed = await started(1_000);
  const child = await started(2_000);
  expect(await program.json(["customer", "redact", "7", "--yes"])).toEqual({ redacted: gid.customer(7) });
  killed.kill("SIGKILL");
  child.stdin.write(asLines([ADA]));
  await child.stdin.end();
  expect(await child.exited).toBe(0);
  expect(JSON.parse(await child.stdout.text())).toMatchObject({ read: 1_001, leftOut: 1 });
  const emptied = { customer: { email: null, firstName: null, lastName: null, creditsCents: 5 } };
  expect(await program.json(["customer", "export", "7"])).toMatchObject(emptied);

  const repeated = await program.run(["import", file]);
  expect(repeated).toMatchObject({ status: 0, stdout: "read 1001, changed 0, events 0\n" });
  expect(repeated.stderr).toBe(
    "Left out the personal data of 1 record: these people were redacted after the file last changed, or during the " +
      "import.\n",
  );
  expect(await program.json(["customer", "export", "7"])).toMatchObject(emptied);
  expect(await program.holds("ada@example.com")).toBe(false);

  const redirected = await importStdin(Bun.file(file));
  expect(JSON.parse(await redirected.stdout.text())).toMatchObject({ changed: 0, leftOut: 1 });

  writeFileSync(file, asLines([ADA]));
  expect(await program.json(["import", file])).toEqual({ read: 1, changed: 1, events: 0 });
});
