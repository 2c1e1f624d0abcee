import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { customer } from "../support/records.ts";

const DOMAIN = "alpha.myshopify.com";
const COUNT = 20_000;

/** Whether a body is stored whole and not applied to its end. */
async function bodyWaits(program: Program): Promise<boolean> {
  return (await program.rows("intake_bodies")).some(({ complete }) => Number(complete) === 1);
}

/** Posts many customers called Old, and resolves when they are stored and not yet applied to the end. */
async function postLarge() {
  const program = await Program.withShop();
  const { secret } = await program.json<{ secret: string }>(["intake", "secret"]);
  const server = await program.serve();
  const post = async (body: string): Promise<number | undefined> => {
    const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
    const headers = { "X-Service-Shop": DOMAIN, "X-Service-Signature": signature };
    return (await fetch(`${server.url}/intake`, { method: "POST", body, headers }).catch(() => undefined))?.status;
  };
  const records = Array.from({ length: COUNT }, (_, n) => customer(n + 1, { firstName: "Old" }));
  const large = post(records.map((each) => JSON.stringify(each)).join("\n"));
  await eventually(() => bodyWaits(program));
  return { program, server, post, large };
}

const NEWER = JSON.stringify(customer(COUNT, { firstName: "New" }));

/** The first name of the body's last customer. */
async function lastName(program: Program): Promise<unknown> {
  const row = (await program.rows("customers")).find(({ json }) => String(json).includes(`/${COUNT}"`));
  return (JSON.parse(String(row?.["json"])) as { firstName: string }).firstName;
}

test("a small post is applied after a large body of its shop that is applied meanwhile", async () => {
  const { program, post, large } = await postLarge();
  const small = post(NEWER);
  expect(await bodyWaits(program)).toBe(true);
  expect([await small, await large]).toEqual([202, 202]);
  expect(await lastName(program)).toBe("New");
});

test("an import after a kill is not overwritten by the rest of a large body", async () => {
  const { program, server, large } = await postLarge();
  await server.stop("SIGKILL");
  expect(await large).toBeUndefined();
  expect(await bodyWaits(program)).toBe(true);
  expect(await program.json(["import", "-"], { stdin: NEWER })).toEqual({ read: 1, changed: 1, events: 0 });
  expect(await bodyWaits(program)).toBe(false);
  await program.serve();
  expect(await lastName(program)).toBe("New");
});
