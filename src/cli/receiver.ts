import { verifySignature } from "../client/signature.ts";
import { cannotListen } from "../domain/error.ts";
import { tell } from "./print.ts";

export interface ReceivedWebhook {
  /** Whether one of the secrets made the signature. */
  genuine: boolean;
  topic: string;
  id: string;
  body: string;
}

interface ReceiverSettings {
  /** On 127.0.0.1; 0 means any free port. */
  port: number;
  /** All signing secrets of the shop, newest first. An older secret signs the deliveries queued before a rotation. */
  secrets: () => Promise<string[]>;
  onReceived: (received: ReceivedWebhook) => void;
  /** URL to which genuine webhooks are forwarded. The receiver returns the response of this URL. */
  forwardTo?: string | undefined;
  /** Returns the response to a genuine webhook; undefined means status 200. */
  answer?: (received: ReceivedWebhook) => Response | undefined;
}

export interface Receiver {
  url: string;
  stop(): Promise<void>;
}

/** Answers genuine webhooks as `forwardTo` or `answer` says, or with 200. Forged webhooks get 401. @throws SdsError */
export function startReceiver({ port, secrets, onReceived, forwardTo, answer }: ReceiverSettings): Receiver {
  const server = listenOn(port, async (request) => {
    const body = await request.text();
    const header = request.headers.get("x-service-signature");
    const checks = (await secrets()).map((secret) => verifySignature(secret, body, header));
    const genuine = (await Promise.all(checks)).includes(true);
    const received = { genuine, topic: request.headers.get("x-service-topic") ?? "", id: idOf(body), body };
    onReceived(received);
    if (!genuine) return new Response("The signature is wrong.\n", { status: 401 });
    if (forwardTo !== undefined) return forward(forwardTo, request.headers, body);
    return answer?.(received) ?? new Response("ok\n");
  });
  return { url: `http://127.0.0.1:${server.port}/`, stop: () => server.stop(true) };
}

function listenOn(port: number, fetch: (request: Request) => Promise<Response>) {
  try {
    return Bun.serve({ hostname: "127.0.0.1", port, reusePort: false, development: false, fetch });
  } catch (thrown) {
    throw cannotListen("127.0.0.1", port, thrown);
  }
}

/** Webhook headers that are forwarded to `forwardTo`. */
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
