import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { answerGraphql, type Outcome, operationName } from "./admin-graphql.ts";
import { AppKey } from "./app-key.ts";
import { Bucket } from "./bucket.ts";
import { bulkLines, refuseBulkQuery } from "./bulk-query.ts";
import { answerControl } from "./control.ts";
import { DeployedApp } from "./deployed-app.ts";
import type { Fault, FaultInfo } from "./faults.ts";
import { FileHost } from "./file-host.ts";
import { type Answer, asRequest, type Body, json, readBody, write } from "./http.ts";
import { PlatformShop } from "./shop.ts";
import type { ShopOptions } from "./shop-options.ts";
import { answerToken, REFUSED, tokenOperation } from "./token-endpoint.ts";
import { API_VERSION, type SignedWebhook, signedWith, type Webhook } from "./webhook.ts";

export interface StandInOptions {
  clientId?: string;
  clientSecret?: string;
  now?: () => number;
  port?: number;
  maximumAvailable?: number;
  restoreRate?: number;
  maxQueryCost?: number;
  /** The URL to which each webhook is posted immediately. */
  webhooksTo?: string;
  /** The lifetime of access tokens in seconds, if it should differ from the platform's. */
  tokenLife?: number;
  /** The handles of the triggers that the app declares. */
  handles?: string[];
}

export interface RequestLog {
  shop: string;
  /** The operation's name, or `token`, or `exchange` for the exchange of an ID token. */
  operation: string;
  cost: number;
  at: number;
  outcome: Outcome | "fault" | "unauthorized" | "not found";
}

const BAD_TOKEN = { errors: "[API] Invalid API key or access token (unrecognized login or wrong password)" };
const HANDLES = [
  "subscription-created",
  "subscription-cancelled",
  "billing-attempt-failed",
  "streak-milestone-reached",
];
/** The platform gives a receiver five seconds. */
const WEBHOOK_TIMEOUT_MS = 5000;
const FIRST_ID = 9_007_199_254_741_001n;
/** Each shop has ids of its own. */
const IDS_PER_SHOP = 1_000_000_000_000n;

/** The platform for tests: some shops, the Admin API with the real schema, and webhooks. */
export class StandIn {
  readonly shops = new Map<string, PlatformShop>();
  readonly requests: RequestLog[] = [];
  /** Requests that the platform would refuse, or that the stand-in does not support. Tests expect an empty list. */
  readonly invalid: string[] = [];
  /** Webhooks that could not be delivered. */
  readonly undelivered: { webhook: Webhook; reason: string }[] = [];
  /** Called for each request. Returns the fault of the request. */
  fault: (info: FaultInfo) => Fault = () => undefined;
  webhooksTo: string | undefined;
  /** The API versions that are named in answers and in webhooks. */
  versions = { answers: API_VERSION, webhooks: API_VERSION };
  /** Fields that the platform's version of the API does not have, such as `Order.name`. */
  removedFields: ReadonlySet<string> = new Set();
  throttled = 0;
  tokenRequests = 0;
  private readonly options: Required<Omit<StandInOptions, "webhooksTo" | "tokenLife">>;
  private readonly tokenLife: number | undefined;
  private readonly handles: ReadonlySet<string>;
  private readonly buckets = new Map<string, Bucket>();
  private readonly counts = new Map<string, number>();
  private readonly server: Server;
  readonly app = new DeployedApp();
  readonly appKey = new AppKey();
  /** The host from which the program downloads the results of bulk operations. */
  readonly files = new FileHost((what) => this.invalid.push(what));
  private posting: Promise<unknown> = Promise.resolve();

  private constructor(options: StandInOptions) {
    const { clientId = "client", clientSecret = "secret", now = Date.now, port = 0 } = options;
    const { maximumAvailable = 2000, restoreRate = 100, maxQueryCost = 1000, handles = HANDLES } = options;
    this.options = { clientId, clientSecret, now, port, maximumAvailable, restoreRate, maxQueryCost, handles };
    this.handles = new Set(handles);
    this.tokenLife = options.tokenLife;
    this.webhooksTo = options.webhooksTo;
    // Bun.serve cannot close a connection without an answer, so this is a server of node:http.
    this.server = createServer((request, response) => {
      this.serve(request, response).catch((error: unknown) => {
        if (request.destroyed || response.destroyed) return;
        this.invalid.push(`the stand-in failed: ${error}`);
        response.writeHead(500).end(JSON.stringify({ errors: String(error) }));
      });
    });
  }

  /** Listens on 127.0.0.1. */
  static async start(options: StandInOptions = {}): Promise<StandIn> {
    const standIn = new StandIn(options);
    await standIn.files.start();
    await new Promise<void>((listening) => standIn.server.listen(standIn.options.port, "127.0.0.1", listening));
    return standIn;
  }

  async stop(): Promise<void> {
    for (const { bulk } of this.shops.values()) bulk.stop();
    await this.files.stop();
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }

  get address(): string {
    const address = this.server.address();
    if (address === null || typeof address === "string") throw new Error("the stand-in does not listen");
    return `http://127.0.0.1:${address.port}`;
  }

  /** The value for SDS_PLATFORM_URL. `{shop}` stands for the shop's domain. */
  get url(): string {
    return `${this.address}/{shop}`;
  }

  addShop(domain: string, options: ShopOptions = {}): PlatformShop {
    const index = this.shops.size;
    const shop = new PlatformShop(domain, options, {
      now: this.options.now,
      tokenLife: this.tokenLife,
      firstId: FIRST_ID + BigInt(index) * IDS_PER_SHOP,
      shopNumber: 548_380_009 + index,
      payloadFor: (topic, payload) => this.app.payloadFor(topic, payload),
      onWebhook: (webhook) => this.post(webhook),
      bulk: {
        refuse: refuseBulkQuery,
        lines: (of, query) => bulkLines(of, query, (what) => this.invalid.push(what)),
        unknown: (what) => this.invalid.push(what),
        files: this.files,
      },
    });
    this.shops.set(domain, shop);
    this.buckets.set(domain, new Bucket(this.options.maximumAvailable, this.options.restoreRate));
    return shop;
  }

  /** Sets the maximum number of points that a query may cost. */
  setMaxQueryCost(points: number): void {
    this.options.maxQueryCost = points;
  }

  /** Gives a shop another domain. Requests for the old domain still work, unless `movedTo` redirects them. */
  renameShop(domain: string, newDomain: string): void {
    const shop = this.shop(domain);
    shop.domain = newDomain;
    this.shops.set(newDomain, shop);
    this.buckets.set(newDomain, this.bucket(domain));
  }

  shop(domain: string): PlatformShop {
    const shop = this.shops.get(domain);
    if (shop === undefined) throw new Error(`the stand-in has no shop ${domain}`);
    return shop;
  }

  bucket(domain: string): Bucket {
    const bucket = this.buckets.get(domain);
    if (bucket === undefined) throw new Error(`the stand-in has no shop ${domain}`);
    return bucket;
  }

  signed(webhook: Webhook): SignedWebhook {
    return signedWith(this.options.clientSecret, webhook, this.versions.webhooks);
  }

  send(webhook: Webhook, url: string): Promise<Response> {
    return fetch(url, { method: "POST", ...this.signed(webhook) });
  }

  /** Resolves when all webhooks so far are posted. */
  async settled(): Promise<void> {
    await this.posting;
  }

  private post(webhook: Webhook): void {
    const url = this.webhooksTo;
    if (url === undefined) return;
    this.posting = this.posting.then(async () => {
      try {
        const response = await fetch(url, {
          method: "POST",
          ...this.signed(webhook),
          signal: AbortSignal.timeout(WEBHOOK_TIMEOUT_MS),
        });
        if (!response.ok) this.undelivered.push({ webhook, reason: `status ${response.status}` });
        await response.arrayBuffer();
      } catch (error) {
        this.undelivered.push({ webhook, reason: String(error) });
      }
    });
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk as Uint8Array);
    const raw = Buffer.concat(chunks).toString();
    if (request.url?.startsWith("/control") === true)
      return this.write(response, await answerControl(this, request, raw));
    const [, domain = "", path = ""] = /^\/([^/]+)\/(.*)$/.exec(request.url ?? "") ?? [];
    const isToken = path === "admin/oauth/access_token";
    const body = readBody(raw, request.headers["content-type"]);
    const log: RequestLog = {
      shop: domain,
      operation: isToken ? tokenOperation(body) : operationName(asRequest(body)),
      cost: 0,
      at: this.options.now(),
      outcome: "fault",
    };
    this.requests.push(log);
    const fault = this.fault({
      shop: domain,
      operation: log.operation,
      n: this.count(`${domain} ${log.operation}`),
      variables: (isToken ? undefined : asRequest(body).variables) ?? {},
    });
    if (fault === "reset") return void request.socket.destroy();
    if (typeof fault === "object") await fault.until;
    if (typeof fault === "object" && "status" in fault) return this.write(response, { body: "", ...fault });
    const shop = this.shops.get(domain);
    const answer = isToken
      ? await this.answerToken(shop, body, log)
      : await this.answerQuery(shop, path, request, raw, body, log);
    if (shop?.movedTo !== undefined && shop.movedTo !== domain) {
      const headers = { Location: `https://${shop.movedTo}/${path}` };
      return this.write(response, { status: 301, body: "", headers });
    }
    if (fault === "lost") return void request.socket.destroy();
    this.write(response, answer);
  }

  private write(response: ServerResponse, answer: Answer): void {
    write(response, answer, this.options.now());
  }

  private count(what: string): number {
    const n = (this.counts.get(what) ?? 0) + 1;
    this.counts.set(what, n);
    return n;
  }

  private async answerToken(shop: PlatformShop | undefined, body: Body, log: RequestLog): Promise<Answer> {
    this.tokenRequests++;
    const app = { ...this.options, url: this.url, key: this.appKey };
    const answer = await answerToken(shop, body, app);
    log.outcome = answer.status === 200 ? "ok" : "unauthorized";
    return answer;
  }

  /** How many times the program tried to exchange an ID token for a pair of tokens (access and refresh). */
  get exchanges(): number {
    return this.requests.filter(({ operation }) => operation === "exchange").length;
  }

  private async answerQuery(
    shop: PlatformShop | undefined,
    path: string,
    request: IncomingMessage,
    raw: string,
    body: Body,
    log: RequestLog,
  ): Promise<Answer> {
    log.outcome = "not found";
    if (shop === undefined || path !== `admin/api/${API_VERSION}/graphql.json` || request.method !== "POST") {
      this.invalid.push(`${request.method} ${request.url}`);
      return json(404, { errors: "Not Found" });
    }
    log.outcome = "unauthorized";
    const token = request.headers["x-shopify-access-token"];
    if (!shop.tokens.isGood(typeof token === "string" ? token : undefined)) return json(401, BAD_TOKEN);
    if (shop.access !== "open") return json(...REFUSED[shop.access]);
    const answer = await answerGraphql({
      shop,
      request: asRequest(body),
      raw,
      bucket: this.bucket(shop.domain),
      maxQueryCost: this.options.maxQueryCost,
      handles: this.handles,
      removedFields: this.removedFields,
      unknown: (what) => this.invalid.push(what),
    });
    log.cost = answer.cost;
    log.outcome = answer.outcome;
    if (answer.outcome === "throttled") this.throttled++;
    const { status, body: text, headers } = json(200, answer.body);
    return { status, body: text, headers: { ...headers, "X-Shopify-API-Version": this.versions.answers } };
  }
}
