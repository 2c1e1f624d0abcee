import { expect } from "bun:test";
import type { Program } from "./program.ts";
import { Receiver } from "./receiver.ts";
import type { Answers } from "./stored-database.ts";

interface Delivery {
  id: string;
  kind: string;
  status: string;
  body: string;
  signature: string | null;
}

/** The parsed outputs of the stored commands whose arguments begin with `args`. */
function printed<T>({ commands }: Answers, ...args: string[]): T[] {
  return commands
    .filter((command) => args.every((arg, index) => command.args[index] === arg))
    .map(({ stdout }) => JSON.parse(stdout) as T);
}

/** Starts `serve` on a stored database, and expects that it sends the waiting deliveries unchanged. */
export async function expectWaitingDeliveries(program: Program, answers: Answers): Promise<void> {
  const receiver = new Receiver();
  for (const { domain } of answers.shops)
    await program.json(["webhook", "set", "--shop", domain, "--url", receiver.url]);
  await program.serve();
  const due = printed<Delivery[]>(answers, "delivery", "list", "--limit")
    .flat()
    .filter(({ kind, status }) => kind === "webhook" && (status === "pending" || status === "retrying"))
    .map(({ id }) => id);
  expect(due.length).toBeGreaterThan(10);
  const received = await receiver.gets(due.length);
  expect(received.map(({ id }) => id).toSorted()).toEqual(due.toSorted());
  const shown = printed<Delivery>(answers, "delivery", "show").filter(({ id }) => due.includes(id));
  expect(shown.length).toBeGreaterThan(4);
  for (const { id, body, signature } of shown)
    expect(received.find((each) => each.id === id)).toMatchObject({ id, body, signature: signature ?? "none" });
}
