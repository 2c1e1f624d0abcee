import { verifySignature } from "../client/signature.ts";
import { SdsError } from "../domain/error.ts";
import { tell } from "./print.ts";

/** A webhook as a receiver sees it. */
export interface ReceivedWebhook {
  /** Whether the signature is right. */
  genuine: boolean;
  topic: string;
  id: string;
  body: string;
}

interface ReceiverSettings {
  /** On 127.0.0.1; 0 means any free port. */
  port: number;
  /**
   * All signing secrets of the shop, newest first: deliveries that were queued before a rotation are signed with an
   * older one.
   */
  secrets: () => Promise<string[]>;
  onReceived: (received: ReceivedWebhook) => void;
  /** Genuine webhooks are passed on to this URL. */
  forwardTo?: string | undefined;
}

export interface Receiver {
  url: string;
  stop(): Promise<void>;
}

/**
 * Starts a receiver that answers 200 to genuine webhooks, or what `forwardTo` answers, and 401 to all others.
 * @throws SdsError `failed` if the port is taken
 */
export function startReceiver({ port, secrets, onReceived, forwardTo }: ReceiverSettings): Receiver {
  const server = listenOn(port, async (request) => {
    const body = await request.text();
    const header = request.headers.get("x-service-signature");
    const checks = (await secrets()).map((secret) => verifySignature(secret, body, header));
    const genuine = (await Promise.all(checks)).includes(true);
    onReceived({ genuine, topic: request.headers.get("x-service-topic") ?? "", id: idOf(body), body });
    if (!genuine) return new Response("The signature is wrong.\n", { status: 401 });
    return forwardTo === undefined ? new Response("ok\n") : forward(forwardTo, request.headers, body);
  });
  return {
    url: `http://127.0.0.1:${server.port}/`,
    stop: () => server.stop(true),
  };
}

function listenOn(port: number, fetch: (request: Request) => Promise<Response>) {
  try {
    return Bun.serve({ hostname: "127.0.0.1", port, reusePort: false, development: false, fetch });
  } catch (thrown) {
    throw new SdsError("failed", `cannot listen on 127.0.0.1 port ${port}`, { cause: thrown });
  }
}

/** The headers that are passed on, as far as a webhook has them. */
const FORWARDED = [
  "content-type",
  "x-service-topic",
  "x-service-signature",
  "x-service-test",
  "webhook-id",
  "webhook-timestamp",
  "webhook-signature",
];

async function forward(url: string, headers: Headers, body: string): Promise<Response> {
  const kept = [...headers].filter(([name]) => FORWARDED.includes(name));
  try {
    const answer = await fetch(url, { method: "POST", headers: kept, body, redirect: "manual" });
    return new Response(await answer.bytes(), { status: answer.status });
  } catch {
    tell(`Could not reach ${url}.`);
    return new Response(`Could not reach ${url}.\n`, { status: 502 });
  }
}

function idOf(body: string): string {
  try {
    return String((JSON.parse(body) as { id?: unknown }).id);
  } catch {
    return "?";
  }
}
