import { expect } from "bun:test";
import { verifySignature } from "../../src/client/signature.ts";
import { afterTest } from "./cleanup.ts";
import { webhookProblems } from "./described.ts";
import { eventually } from "./eventually.ts";

export interface Delivered {
  body: string;
  id: string;
  topic: string;
  signature: string;
  /** All headers, with names in lower case. */
  headers: Record<string, string>;
  at: number;
  json: { id: string; topic: string; created_at: string; shop: string; data: Record<string, unknown> };
}

/** An endpoint on this machine that keeps what it receives. The test sets its answer. */
export class Receiver {
  readonly url: string;
  readonly received: Delivered[] = [];
  /** Ids of deliveries that arrived again before the receiver had answered. */
  readonly overlaps: string[] = [];
  answer: (delivered: Delivered) => Response | Promise<Response> = () => new Response("ok");
  /** Differences of the received webhooks from the OpenAPI document. The test fails if there are any. */
  private readonly problems: string[] = [];
  private readonly underWay = new Set<string>();

  /** @param sentBy `test` for webhooks that a test makes by hand: they are not compared with the document */
  constructor(port = 0, sentBy: "program" | "test" = "program") {
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port,
      idleTimeout: 255,
      fetch: async (request) => {
        const body = await request.text();
        const json = JSON.parse(body) as Delivered["json"];
        const { headers } = request;
        const delivered = {
          body,
          json,
          id: json.id,
          topic: headers.get("x-service-topic") ?? "",
          signature: headers.get("x-service-signature") ?? "",
          headers: Object.fromEntries(headers),
          at: Date.now(),
        };
        if (this.underWay.has(json.id)) this.overlaps.push(json.id);
        this.underWay.add(json.id);
        if (sentBy === "program") this.problems.push(...webhookProblems(headers, json));
        this.received.push(delivered);
        try {
          return await this.answer(delivered);
        } finally {
          this.underWay.delete(json.id);
        }
      },
    });
    afterTest(async () => {
      await server.stop(true);
      expect(this.problems).toEqual([]);
    });
    this.url = `http://127.0.0.1:${server.port}/hooks`;
  }

  /** Holds back its answers. @returns a function that sends them */
  hold(status = 200): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.answer = async () => {
      await promise;
      return new Response(null, { status });
    };
    return resolve;
  }

  /** Waits until at least `count` deliveries have come. */
  async gets(count: number): Promise<Delivered[]> {
    await eventually(() => this.received.length >= count);
    return this.received;
  }

  async allGenuine(secret: string): Promise<boolean> {
    const checks = await Promise.all(
      this.received.map(({ body, signature }) => verifySignature(secret, body, signature)),
    );
    return !checks.includes(false);
  }
}
