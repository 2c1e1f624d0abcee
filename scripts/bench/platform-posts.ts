import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "bun";
import { signedWith } from "../../test/support/platform/webhook.ts";
import { DOMAIN } from "./stand-in.ts";

const SAMPLES = join(import.meta.dir, "../../test/support/platform-webhooks");

/** A platform webhook with its subject. */
export interface PlatformPost {
  webhookId: string;
  topic: string;
  subject: string;
  body: string;
  triggeredAt: number;
}

/**
 * Number of webhooks with the same millisecond as `triggeredAt`. In a millisecond, sds accepts fewer webhooks than
 * this. So the run takes longer than the time between the first and the last `triggeredAt`.
 */
const PER_MILLISECOND = 10;

/**
 * Makes a webhook about each contract and each customer, alternately, from the platform's sample payloads.
 * @param now when the last webhook is sent, epoch milliseconds
 */
export function platformPosts(contracts: readonly string[], customers: readonly string[], now: number): PlatformPost[] {
  const contractBody = readFileSync(join(SAMPLES, "subscription_contracts__update.json"), "utf8");
  // Replaces the date of the sample, which is older than the customer in the mirror.
  const customerBody = readFileSync(join(SAMPLES, "customers__update.json"), "utf8").replaceAll(
    "2021-12-31T19:00:00-05:00",
    new Date(now).toISOString(),
  );
  const post = (topic: string, subject: string, body: string, sampleId: string, triggeredAt: number): PlatformPost => {
    const id = subject.slice(subject.lastIndexOf("/") + 1);
    return { webhookId: crypto.randomUUID(), topic, subject, body: body.replaceAll(sampleId, id), triggeredAt };
  };
  return contracts.flatMap((contract, index) => {
    const triggeredAt = now - Math.floor(((contracts.length - 1 - index) * 2) / PER_MILLISECOND);
    return [
      post("subscription_contracts/update", contract, contractBody, "7879037765", triggeredAt),
      post("customers/update", customers[index] ?? "", customerBody, "706405506930370084", triggeredAt),
    ];
  });
}

/**
 * Makes the bytes of a signed request, as the platform sends it. Call this before the measurement: posting ready bytes
 * costs almost nothing compared with answering them.
 */
export function requestOf({ webhookId, topic, body, triggeredAt }: PlatformPost, secret: string): Uint8Array {
  const at = new Date(triggeredAt).toISOString();
  const { headers } = signedWith(secret, {
    shop: DOMAIN,
    topic,
    body,
    id: webhookId,
    eventId: webhookId,
    triggeredAt: at,
  });
  const lines = Object.entries({
    Host: "127.0.0.1",
    "User-Agent": "Shopify-Captain-Hook",
    Accept: "*/*",
    "Content-Length": String(Buffer.byteLength(body)),
    ...headers,
  });
  return Buffer.from(
    `POST /platform/webhooks HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`,
  );
}

export interface Posted {
  seconds: number;
  /** Milliseconds from each request to its answer, in the order of the answers. */
  latencies: number[];
}

/** Posts all requests over several connections, each with one request at a time. @throws if an answer is not 200 */
export async function postAll(url: string, requests: readonly Uint8Array[], connections: number): Promise<Posted> {
  const { hostname, port } = new URL(url);
  const latencies: number[] = [];
  const left = requests.values();
  const connection = async () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let sentAt = 0;
    let answer = "";
    function next(socket: { write(bytes: Uint8Array): number; end(): void }): void {
      const request = left.next().value;
      if (request === undefined) {
        resolve();
        socket.end();
        return;
      }
      sentAt = performance.now();
      // A small request on an idle connection is written as a whole. A partial write is an error.
      if (socket.write(request) !== request.length) reject(new Error("the connection took a part of a request"));
    }
    await connect({
      hostname,
      port: Number(port),
      socket: {
        open: next,
        data(socket, bytes) {
          answer += bytes.toString("latin1");
          if (!isWhole(answer)) return;
          if (!answer.startsWith("HTTP/1.1 200 ")) return reject(new Error(`a webhook was answered: ${answer}`));
          answer = "";
          latencies.push(performance.now() - sentAt);
          next(socket);
        },
        close: () => reject(new Error("the connection was closed")),
        error: (_socket, error) => reject(error),
      },
    });
    return promise;
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: connections }, connection));
  return { seconds: (performance.now() - start) / 1_000, latencies };
}

function isWhole(answer: string): boolean {
  const head = answer.indexOf("\r\n\r\n");
  return head !== -1 && answer.length >= head + 4 + Number(/content-length: (\d+)/i.exec(answer)?.[1] ?? 0);
}
