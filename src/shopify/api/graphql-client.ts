import type { Log } from "../../lib/log.ts";
import type { Sleep } from "../../lib/waits.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import { apiUrls, type ShopAddress } from "./address.ts";
import type { DeniedField } from "./graphql-response.ts";
import type { Operation } from "./operations/operation.ts";
import { PlatformError } from "./platform-error.ts";
import { createRateLimits, type Priority, type QueryShape } from "./rate-limits.ts";
import { createRequestSender } from "./request-sender.ts";
import type { AccessTokens } from "./tokens.ts";
import type { ConnectionWarnings } from "./warnings.ts";

/** Runs typed operations of the platform's Admin API. */
export interface GraphqlClient {
  /** Runs an operation. @throws PlatformError */
  query<V, D>(shop: ShopAddress, operation: Operation<V, D>, variables: V): Promise<D>;
}

interface QueryOptions {
  /** Maximum number of retries after temporary failures. Waits for points are not included. */
  maxRetries?: number;
  /** Requests of a more urgent priority get points first. The default is `attempt`, the most urgent. */
  priority?: Priority;
  signal?: AbortSignal;
  /** Checked before the request is sent; true cancels the request. */
  isOver?: () => boolean;
}

export interface AdminGraphqlClient extends GraphqlClient {
  /** Runs an operation whose variables are JSON text: a float cannot hold all numbers. @throws PlatformError */
  queryWithJson<V, D>(
    shop: ShopAddress,
    operation: Operation<V, D>,
    variablesJson: string,
    options?: QueryOptions,
  ): Promise<D>;
  /** The URL for requests about a shop. */
  urlOf(shop: ShopAddress): string;
  /** Returns the same client with other options. Callers that retry on their own use fewer retries. */
  withOptions(options: Pick<QueryOptions, "maxRetries" | "priority">): GraphqlClient;
  /** Whether the platform was slow to answer the last request about the shop. Waits for points are not included. */
  isSlow(shopId: number): boolean;
  /** Returns the lowest number of points that any shop has now; undefined before the platform's first answer. */
  fewestPoints(): number | undefined;
  /** Makes all requests fail from now on, also running requests. May be called twice. */
  stop(): void;
}

interface Dependencies {
  fetch: typeof globalThis.fetch;
  /** A URL in which `{shop}` stands for the domain. */
  baseUrl: string;
  tokens: Pick<AccessTokens, "get">;
  connections: Pick<ConnectionStore, "setTrouble">;
  warnings: ConnectionWarnings;
  sleep: Sleep;
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
}

const MAX_RETRIES = 4;
/** Wait before the first retry, unless the platform names a wait. Each further wait is twice as long. */
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;

/** Creates a client that stays within the points of each shop, and repeats requests after temporary failures. */
export function createGraphqlClient(dependencies: Dependencies): AdminGraphqlClient {
  const { fetch, baseUrl, tokens, connections, warnings, sleep, now, clock, log } = dependencies;
  const stopping = new AbortController();
  const limits = createRateLimits(clock, (waitMs) => sleep(waitMs, stopping.signal));
  const { send, isSlow } = createRequestSender({ fetch, baseUrl, tokens, limits, warnings, clock });
  const logDenied = createDeniedLog(log);

  /** Stores why the platform refuses a shop's connection, or null if it is accepted. Logs each change. */
  async function setTrouble({ id, domain }: ShopAddress, trouble: string | null): Promise<void> {
    if (!(await connections.setTrouble(id, trouble, now()))) return;
    if (trouble === null) log.info("the platform accepts the shop's connection again", { shop: domain });
    else log.error("the platform refuses the shop's connection", { shop: domain, error: trouble });
  }

  async function run<D>(
    shop: ShopAddress,
    { shape, body, isDivisible }: PreparedQuery,
    { maxRetries = MAX_RETRIES, priority = "attempt", signal, isOver = () => false }: QueryOptions,
  ): Promise<D> {
    const stopped = signal === undefined ? stopping.signal : AbortSignal.any([stopping.signal, signal]);
    for (let retries = 0; ; ) {
      try {
        stopped.throwIfAborted();
        const { data, denied } = await send(shop, { shape, body, priority, isOver }, stopped);
        if (denied !== undefined) logDenied(shop, denied);
        if (denied?.level !== undefined) await warnings.noteMissingLevel(shop, denied.level);
        await setTrouble(shop, null);
        await warnings.note(shop, `operation ${shape.operationName}`, null);
        return data as D;
      } catch (thrown) {
        if (stopped.aborted) throw new PlatformError("unavailable", "the request to the platform was stopped");
        if (!(thrown instanceof PlatformError)) throw thrown;
        if (thrown.needsMerchant) await setTrouble(shop, thrown.message);
        if (thrown.missingLevel !== undefined) await warnings.noteMissingLevel(shop, thrown.missingLevel);
        if (thrown.movedTo !== undefined) await warnings.noteDomain(shop, thrown.movedTo);
        if (thrown.isObsolete) await warnings.note(shop, `operation ${shape.operationName}`, thrown.message);
        if (!thrown.isThrottled && retries >= retryLimit(thrown, isDivisible, maxRetries)) throw thrown;
        const waitMs = Math.min(thrown.retryAfterMs ?? FIRST_WAIT_MS * 2 ** retries, MAX_WAIT_MS);
        const fields = { shop: shop.domain, operation: shape.operationName, waitMs, error: thrown.message };
        log.debug("a request to the platform failed and will be repeated", fields);
        if (!thrown.isThrottled) retries += 1;
        if (waitMs > 0) await sleep(waitMs, stopped);
      }
    }
  }

  return {
    query: (shop, operation, variables) => run(shop, queryOf(operation, variables), {}),
    queryWithJson: (shop, operation, variablesJson, options = {}) =>
      run(shop, queryWithText(operation, variablesJson), options),
    urlOf: ({ domain }) => apiUrls(baseUrl, domain).graphql,
    withOptions: (options) => ({
      query: (shop, operation, variables) => run(shop, queryOf(operation, variables), options),
    }),
    isSlow,
    fewestPoints: limits.fewestPoints,
    stop: () => stopping.abort(),
  };
}

/** Returns a function that logs each field that the app is not allowed to read, once for each shop. */
function createDeniedLog(log: Log): (shop: ShopAddress, field: DeniedField) => void {
  const logged = new Set<string>();
  return ({ id, domain }, { name, message: error }) => {
    const key = `${id} ${name}`;
    if (logged.has(key)) return;
    logged.add(key);
    const message = "the app has no access to a field of the platform; everything else is mirrored";
    log.warn(message, { shop: domain, field: name, error: error.slice(0, 300) });
  };
}

/** Returns the maximum number of retries for this error. */
function retryLimit({ reason, isTooCostly, partial }: PlatformError, isDivisible: boolean, maxRetries: number): number {
  if (reason !== "unavailable" && reason !== "incomplete") return 0;
  if (isTooCostly || (reason === "incomplete" && isDivisible)) return 0;
  // If single objects failed, one retry is enough: they can fail for ever, and the inbox retries them later.
  return partial === undefined ? maxRetries : Math.min(1, maxRetries);
}

/** A query that is ready to be sent. */
interface PreparedQuery {
  shape: QueryShape;
  body: string;
  /** See `Operation`. */
  isDivisible: boolean;
}

function queryOf<V, D>(operation: Operation<V, D>, variables: V): PreparedQuery {
  const isDivisible = operation.isDivisible(variables);
  return queryWithText(operation, JSON.stringify(variables), operation.sizeOf(variables), isDivisible);
}

function queryWithText<V, D>(
  { text, name }: Operation<V, D>,
  variablesJson: string,
  size = 1,
  isDivisible = false,
): PreparedQuery {
  const body = `{"query":${JSON.stringify(text)},"operationName":${JSON.stringify(name)},"variables":${variablesJson}}`;
  return { shape: { operationName: name, size }, body, isDivisible };
}
