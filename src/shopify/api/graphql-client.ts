import { RateLimiter, type ThrottleStatus } from "../../lib/rate-limiter.ts";
import type { Sleep } from "../../lib/sleep.ts";
import type { Log } from "../../log.ts";
import type { ConnectionStore } from "../../store/connections.ts";
import { addressOf } from "./address.ts";
import type { Operation } from "./operations.ts";
import { PlatformError } from "./platform-error.ts";
import { type Answer, postJson } from "./post-json.ts";
import type { TokenKeeper } from "./tokens.ts";

/** Who can ask the platform. */
export interface GraphqlClient {
  /** @throws PlatformError */
  query<V, A>(shop: QueriedShop, operation: Operation<V, A>, variables: V): Promise<A>;
}

interface QueriedShop {
  id: number;
  domain: string;
}

interface GraphqlError {
  message: string;
  path?: (string | number)[];
  extensions?: { code?: string };
}

/**
 * Fields that need a grant of their own, protected personal data or the products, without which all else can be mirrored. What is kept from us is taken out of the answer, so that
 * it is not mistaken for empty.
 */
const DISPENSABLE = new Set(["firstName", "lastName", "defaultEmailAddress", "emailAddress", "variant", "product"]);

interface Cost {
  requestedQueryCost: number;
  throttleStatus?: ThrottleStatus;
}

export interface QueryOptions {
  /** Tries in all. */
  tries?: number;
  signal?: AbortSignal;
}

const TRIES = 5;
/** Waits after a try that failed, where the platform doesn't say how long. Milliseconds. */
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 60_000;
/** Where there is no word of a token's cost, or of the wait. */
const THROTTLED_WAIT = 1_000;

/**
 * The platform's Admin API: asks typed operations of it, at the pace that its answers set, and again where it may help.
 */
export class AdminGraphqlClient implements GraphqlClient {
  private readonly fetch: typeof globalThis.fetch;
  private readonly base: string;
  private readonly tokens: TokenKeeper;
  private readonly connections: ConnectionStore;
  private readonly sleep: Sleep;
  private readonly log: Log;
  private readonly rateLimiters = new Map<number, RateLimiter>();
  /** What operations lately cost when they were asked, by name. */
  private readonly costs = new Map<string, number>();
  private readonly stopping = new AbortController();
  private readonly denied = new Set<string>();

  constructor(settings: { fetch: typeof globalThis.fetch; base: string; sleep: Sleep }, tokens: TokenKeeper, connections: ConnectionStore, log: Log) {
    this.fetch = settings.fetch;
    this.base = settings.base;
    this.sleep = settings.sleep;
    this.tokens = tokens;
    this.connections = connections;
    this.log = log;
  }

  /** The same with another number of tries, for those who try again by themselves. */
  withTries(tries: number): GraphqlClient {
    return { query: (shop, operation, variables) => this.query(shop, operation, variables, { tries }) };
  }

  /** Whatever is asked or waits to be fails from now on. May be called twice. */
  stop(): void {
    this.stopping.abort();
  }

  /** @throws PlatformError */
  async query<V, A>(shop: QueriedShop, operation: Operation<V, A>, variables: V, options: QueryOptions = {}): Promise<A> {
    const text = JSON.stringify({ query: operation.text, operationName: operation.name, variables });
    return this.queryText(shop, operation, text, options);
  }

  /**
   * The same with the variables as JSON text, for numbers that a float can't hold.
   * @throws PlatformError
   */
  async queryText<V, A>(shop: QueriedShop, operation: Operation<V, A>, body: string, { tries = TRIES, signal }: QueryOptions = {}): Promise<A> {
    const given = signal === undefined ? this.stopping.signal : AbortSignal.any([this.stopping.signal, signal]);
    for (let attempt = 1; ; attempt += 1) {
      try {
        given.throwIfAborted();
        const data = await this.tryOnce(shop, operation.name, body, given);
        await this.report(shop, null);
        return data as A;
      } catch (thrown) {
        if (given.aborted) throw new PlatformError("unavailable", "the platform was not asked to the end");
        if (!(thrown instanceof PlatformError)) throw thrown;
        if (thrown.status === 401) await this.report(shop, thrown.message);
        if (thrown.reason !== "unavailable" || attempt >= tries) throw thrown;
        const wait = thrown.retryAfter ?? FIRST_WAIT * 2 ** (attempt - 1);
        this.log.debug("the platform is asked again", { shop: shop.domain, operation: operation.name, attempt, wait, error: thrown.message });
        await this.sleep(Math.min(wait, LONGEST_WAIT), this.stopping.signal);
      }
    }
  }

  private async tryOnce(shop: QueriedShop, name: string, body: string, signal: AbortSignal): Promise<unknown> {
    const token = await this.tokens.accessToken(shop, undefined, signal);
    try {
      return await this.send(shop, name, body, token, signal);
    } catch (thrown) {
      if (!(thrown instanceof PlatformError) || thrown.status !== 401) throw thrown;
      // It may have ended before its time: once more with another one.
      return await this.send(shop, name, body, await this.tokens.accessToken(shop, token, signal), signal);
    }
  }

  private async send(shop: QueriedShop, name: string, body: string, token: string, signal: AbortSignal): Promise<unknown> {
    const budget = this.rateLimiterOf(shop.id);
    const giveBack = await budget.take(this.costs.get(name) ?? 0);
    let cost: Cost | undefined;
    try {
      const headers = { "Content-Type": "application/json", "X-Shopify-Access-Token": token };
      const answer = await postJson(this.fetch, addressOf(this.base, shop.domain).graphql, body, headers, signal);
      cost = costIn(answer);
      if (cost !== undefined) this.costs.set(name, cost.requestedQueryCost);
      return this.dataIn(answer, shop, cost);
    } finally {
      giveBack(cost?.throttleStatus);
    }
  }

  private dataIn(answer: Answer, shop: QueriedShop, cost: Cost | undefined): unknown {
    const { status, body, retryAfter } = answer;
    if (status === 401) throw new PlatformError("unauthorized", "the platform refuses the shop's token (HTTP 401)", { status });
    if (status === 429 || status >= 500) throw new PlatformError("unavailable", `the platform answered HTTP ${status}`, { status, retryAfter });
    if (status === 200 && body === undefined) throw new PlatformError("unavailable", "the platform's answer is not JSON", { status });
    if (status !== 200 || body === undefined)
      throw new PlatformError(status === 403 || status === 402 ? "unauthorized" : "refused", `the platform answered HTTP ${status}`, { status });
    const errors = Array.isArray(body["errors"]) ? (body["errors"] as GraphqlError[]) : [];
    const codes = errors.map((each) => each.extensions?.code ?? "");
    if (codes.includes("THROTTLED")) {
      const { currentlyAvailable = 0, restoreRate = 0 } = cost?.throttleStatus ?? {};
      const missing = (cost?.requestedQueryCost ?? 0) - currentlyAvailable;
      const wait = restoreRate > 0 ? Math.max(0, (missing / restoreRate) * 1000) : THROTTLED_WAIT;
      throw new PlatformError("unavailable", "the platform's limit of requests is reached", { status, retryAfter: wait });
    }
    const data = body["data"];
    const denied = codes.includes("ACCESS_DENIED");
    const whole = errors.every((each) => each.extensions?.code === "ACCESS_DENIED" && DISPENSABLE.has(String(each.path?.at(-1))));
    if (whole && typeof data === "object" && data !== null) {
      for (const { path = [] } of errors) takeOut(data, path);
      if (errors.length > 0) this.noteDenied(shop, String(errors[0]?.path?.at(-1)), String(errors[0]?.message));
      return data;
    }
    const said = String(errors[0]?.message ?? "no data").slice(0, 300);
    if (codes.includes("INTERNAL_SERVER_ERROR") || codes.includes("TIMEOUT"))
      throw new PlatformError("unavailable", `the platform answered: ${said}`, { status });
    throw new PlatformError(denied ? "unauthorized" : "refused", `the platform answered: ${said}`, { status });
  }

  /** Once for each shop and field. */
  private noteDenied(shop: QueriedShop, field: string, error: string): void {
    const name = `${shop.id} ${field}`;
    if (this.denied.has(name)) return;
    this.denied.add(name);
    this.log.warn("the platform keeps a field from us, for the app lacks a grant; all else is mirrored", {
      shop: shop.domain,
      field,
      error: error.slice(0, 300),
    });
  }

  private rateLimiterOf(shopId: number): RateLimiter {
    const known = this.rateLimiters.get(shopId);
    if (known !== undefined) return known;
    const budget = new RateLimiter(
      () => performance.now(),
      (ms) => this.sleep(ms, this.stopping.signal),
    );
    this.rateLimiters.set(shopId, budget);
    return budget;
  }

  /** Trouble is said once when it comes and once when it goes, and shown with the shop in between. */
  private async report(shop: QueriedShop, trouble: string | null): Promise<void> {
    const news = await this.connections.setTrouble(shop.id, trouble);
    if (news && trouble !== null)
      this.log.error("the platform does not let us in; connect the shop anew with `sds shop connect`", { shop: shop.domain, error: trouble });
    if (news && trouble === null) this.log.info("the platform lets us in again", { shop: shop.domain });
  }
}

/** Takes a field out of an answer, by its path there, or what became null for its sake: the nearest around it that may be. */
function takeOut(data: object, path: readonly (string | number)[]): void {
  let at = data as Record<string | number, unknown>;
  for (const step of path) {
    const next = at[step];
    if (typeof next !== "object" || next === null) {
      delete at[step];
      return;
    }
    at = next as Record<string | number, unknown>;
  }
}

function costIn({ body }: Answer): Cost | undefined {
  const extensions = body?.["extensions"];
  const cost = typeof extensions === "object" && extensions !== null ? (extensions as { cost?: Cost }).cost : undefined;
  if (!isCount(cost?.requestedQueryCost)) return undefined;
  const { requestedQueryCost, throttleStatus } = cost as Cost;
  const { maximumAvailable, currentlyAvailable, restoreRate } = throttleStatus ?? {};
  const known = isCount(maximumAvailable) && isCount(currentlyAvailable) && isCount(restoreRate);
  return known ? { requestedQueryCost, throttleStatus: { maximumAvailable, currentlyAvailable, restoreRate } } : { requestedQueryCost };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
