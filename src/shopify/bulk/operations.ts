import { messageOf } from "../../domain/error.ts";
import type { Log } from "../../lib/log.ts";
import type { Sleep } from "../../lib/waits.ts";
import type { ShopAddress } from "../api/address.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import {
  BULK_OPERATION,
  type BulkOperationNode,
  CANCEL_BULK_OPERATION,
  RECENT_BULK_OPERATIONS,
  RUN_BULK_QUERY,
} from "../api/operations/bulk.ts";
import { isTemporary, PlatformError } from "../api/platform-error.ts";
import { BulkFailure } from "./file-bytes.ts";

/** Services for bulk operations: queries that the platform runs in the background, with a file as their result. */
export interface BulkServices {
  client: GraphqlClient;
  sleep: Sleep;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
}

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;
/** Maximum time without progress; the platform sets no limit. Most shops can be read page by page in this time. */
const MAX_STANDSTILL_MS = 2 * 3_600_000;
/** Maximum wait for an unreachable platform. After ten days, the platform ends an incomplete operation. */
const MAX_OUTAGE_MS = 10 * 86_400_000;
const USABLE = ["CREATED", "RUNNING", "COMPLETED"];

/**
 * Starts an operation, or finds the operation that an interrupted run started.
 * @returns its gid @throws BulkFailure; PlatformError
 */
export async function beginBulkOperation({ client }: BulkServices, shop: ShopAddress, query: string): Promise<string> {
  const started = await findStarted(client, shop, query);
  if (started !== undefined) return started;
  const { bulkOperation, userErrors } = (await client.query(shop, RUN_BULK_QUERY, { query })).bulkOperationRunQuery;
  if (bulkOperation !== null && userErrors.length === 0) return bulkOperation.id;
  // After a lost answer, the client repeats the request. The platform refuses the second request while the operation of
  // the first request runs. So we look for that operation.
  const repeated = await findStarted(client, shop, query);
  if (repeated !== undefined) return repeated;
  throw new BulkFailure(`the platform does not run the bulk query: ${userErrors[0]?.message.slice(0, 300)}`);
}

async function findStarted(client: GraphqlClient, shop: ShopAddress, query: string): Promise<string | undefined> {
  const { bulkOperations } = await client.query(shop, RECENT_BULK_OPERATIONS, {});
  return bulkOperations.nodes.find((each) => each.query === query && USABLE.includes(each.status))?.id;
}

/**
 * Finds an operation, and waits while the platform cannot be reached.
 * @returns undefined if the operation or its file is gone
 * @throws PlatformError if the platform refuses the query, or cannot be reached for ten days
 */
export async function findBulkOperation(
  { client, sleep, clock, log }: BulkServices,
  shop: ShopAddress,
  id: string,
): Promise<BulkOperationNode | undefined> {
  const beganAt = clock();
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
    try {
      const { bulkOperation } = await client.query(shop, BULK_OPERATION, { id });
      return bulkOperation === null || bulkOperation.status === "EXPIRED" ? undefined : bulkOperation;
    } catch (thrown) {
      if (!isTemporary(thrown) || clock() - beganAt > MAX_OUTAGE_MS) throw thrown;
      if (waitMs === FIRST_WAIT_MS) {
        const message = "cannot ask the platform about its bulk operation; the operation goes on, and sds waits for it";
        log.warn(message, { shop: shop.domain, error: messageOf(thrown) });
      }
      await sleep(waitMs);
    }
  }
}

/** Waits until an operation is complete, and cancels a stalled operation. @throws BulkFailure; PlatformError */
export async function waitForBulkOperation(
  services: BulkServices,
  shop: ShopAddress,
  id: string,
  onWait: (objectCount: number) => void,
): Promise<void> {
  const { client, sleep, clock } = services;
  let seen = "";
  let seenAt = clock();
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
    const askedAt = clock();
    const operation = await findBulkOperation(services, shop, id);
    // The platform's time to respond is not counted as a standstill, because the operation may have made progress.
    seenAt += clock() - askedAt;
    if (operation === undefined) throw new BulkFailure("the platform no longer has the result");
    const { status, errorCode, rootObjectCount } = operation;
    onWait(Number(rootObjectCount));
    if (status === "COMPLETED") return;
    if (status !== "CREATED" && status !== "RUNNING") {
      throw new BulkFailure(`the bulk operation ended with ${[status, errorCode].filter(Boolean).join(", ")}`);
    }
    const state = `${status} ${rootObjectCount}`;
    if (state !== seen) [seen, seenAt] = [state, clock()];
    if (clock() - seenAt > MAX_STANDSTILL_MS) {
      await cancel(client, shop, id);
      throw new BulkFailure("the bulk operation makes no progress");
    }
    await sleep(waitMs);
  }
}

/** Cancels an operation. A failure is ignored, because the platform ends the operation later. */
async function cancel(client: GraphqlClient, shop: ShopAddress, id: string): Promise<void> {
  try {
    await client.query(shop, CANCEL_BULK_OPERATION, { id });
  } catch (thrown) {
    if (!(thrown instanceof PlatformError)) throw thrown;
  }
}
