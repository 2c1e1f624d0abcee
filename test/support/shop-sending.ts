import { createHmac } from "node:crypto";
import { Program } from "./program.ts";
import { Receiver } from "./receiver.ts";

export const DOMAIN = "alpha.myshopify.com";
export const LOCAL = { SDS_EGRESS_ALLOW: "127.0.0.0/8" };

interface Entry {
  id: string;
  status: string;
  attempts: number;
  error: string | null;
}

/** Makes a signed post of the shop to the intake. */
export function signed(body: string, secret: string): RequestInit {
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  return { method: "POST", body, headers: { "X-Service-Shop": DOMAIN, "X-Service-Signature": signature } };
}

/** A shop whose endpoint for all topics is on this machine. */
export async function shopSending(env: Record<string, string> = {}) {
  const program = new Program(undefined, { ...LOCAL, ...env });
  const receiver = new Receiver();
  await program.json(["shop", "add", DOMAIN]);
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
  const intake = await program.json<{ secret: string }>(["intake", "secret"]);
  const post = (url: string, record: object) => fetch(`${url}/intake`, signed(JSON.stringify(record), intake.secret));
  const entries = (...args: string[]) => program.json<Entry[]>(["delivery", "list", ...args]);
  return { program, receiver, secret, post, entries };
}
