import { bulkBody } from "./bulk-webhook.ts";
import type { BulkFile, FileHost } from "./file-host.ts";

export type BulkStatus = "CANCELED" | "CANCELING" | "COMPLETED" | "CREATED" | "EXPIRED" | "FAILED" | "RUNNING";

export interface BulkLine {
  text: string;
  isRoot: boolean;
}

export interface BulkRefusal {
  message: string;
  /** Whether the query itself is invalid. `BulkOperations` then calls the callback `unknown` with the message. */
  isMistake: boolean;
}

export interface BulkOperation {
  readonly id: string;
  readonly query: string;
  readonly groupObjects: boolean;
  readonly createdAt: number;
  status: BulkStatus;
  completedAt: number | null;
  errorCode: string | null;
  objectCount: number;
  rootObjectCount: number;
  file: BulkFile | null;
}

/** How the bulk operations of a shop run. A test can change it at any time. */
export interface BulkBehaviour {
  /** The time until an operation runs; null if it waits for `finishBulkOperations`. */
  delayMs: number | null;
  /** Types that bulk queries must not contain, like `SubscriptionContract`. */
  refuses: string[];
  /** How many operations can run at once. */
  limit: number;
  /** If set, operations fail after this many lines, with partial data. */
  failure: { errorCode: "ACCESS_DENIED" | "INTERNAL_SERVER_ERROR" | "TIMEOUT"; afterLines: number } | null;
  /** If the query does not group its lines, a buffer of this many lines shuffles them. */
  shuffledLines: number;
}

export interface BulkDependencies {
  refuse: (query: string, refuses: readonly string[]) => BulkRefusal | undefined;
  lines: (query: string) => AsyncIterable<BulkLine[]>;
  unknown: (what: string) => void;
  files: FileHost;
  now: () => number;
  newId: () => string;
  emit: (topic: string, payload: ReturnType<typeof bulkBody>) => void;
}

const LIFE_MS = 7 * 86_400_000;
const ENDED: readonly BulkStatus[] = ["CANCELED", "COMPLETED", "EXPIRED", "FAILED"];

/** The bulk operations of one shop, the oldest first. */
export class BulkOperations {
  readonly behaviour: BulkBehaviour = { delayMs: 0, refuses: [], limit: 5, failure: null, shuffledLines: 1000 };
  readonly all: BulkOperation[] = [];
  private readonly dependencies: BulkDependencies;
  private readonly running = new Map<BulkOperation, Promise<void>>();
  private readonly timers = new Set<ReturnType<typeof setTimeout>>();

  constructor(dependencies: BulkDependencies) {
    this.dependencies = dependencies;
  }

  find(id: string): BulkOperation | undefined {
    return this.all.find((operation) => operation.id === id);
  }

  /** The status now: a result expires after seven days. */
  statusOf({ status, completedAt }: BulkOperation): BulkStatus {
    const isOld = completedAt !== null && this.dependencies.now() >= completedAt + LIFE_MS;
    return status === "COMPLETED" && isOld ? "EXPIRED" : status;
  }

  urlOf(operation: BulkOperation, status: "COMPLETED" | "FAILED"): string | null {
    const { file, completedAt } = operation;
    const isOld = completedAt !== null && this.dependencies.now() >= completedAt + LIFE_MS;
    return file === null || isOld || operation.status !== status ? null : this.dependencies.files.urlOf(file);
  }

  run(query: string, groupObjects: boolean) {
    const { behaviour, dependencies } = this;
    const { limit } = behaviour;
    const refused = (code: string, message: string) => ({
      bulkOperation: null,
      userErrors: [{ field: ["query"], code, message }],
    });
    if (this.all.filter(({ status }) => !ENDED.includes(status)).length >= limit)
      return limit === 1
        ? refused("OPERATION_IN_PROGRESS", "A bulk query operation for this app and shop is already in progress.")
        : refused("LIMIT_REACHED", "Bulk operations limit reached. Please try again later.");
    const refusal = dependencies.refuse(query, behaviour.refuses);
    if (refusal?.isMistake === true) dependencies.unknown(refusal.message);
    if (refusal !== undefined) return refused("INVALID", refusal.message);
    const operation: BulkOperation = {
      id: dependencies.newId(),
      query,
      groupObjects,
      createdAt: dependencies.now(),
      status: "CREATED",
      completedAt: null,
      errorCode: null,
      objectCount: 0,
      rootObjectCount: 0,
      file: null,
    };
    this.all.push(operation);
    this.later(() => this.finish(operation));
    return { bulkOperation: operation, userErrors: [] };
  }

  cancel(id: string) {
    const operation = this.find(id);
    if (operation === undefined)
      return { bulkOperation: null, userErrors: [{ field: ["id"], message: "Bulk operation does not exist" }] };
    if (ENDED.includes(operation.status)) {
      const message = `A bulk operation cannot be canceled when it is ${operation.status.toLowerCase()}`;
      return { bulkOperation: operation, userErrors: [{ field: null, message }] };
    }
    // A running operation notices the cancellation by itself.
    if (operation.status === "CREATED") this.later(() => this.finish(operation));
    operation.status = "CANCELING";
    return { bulkOperation: operation, userErrors: [] };
  }

  /** Runs all waiting operations to the end, and waits for running ones. */
  async finishAll(): Promise<void> {
    for (const operation of this.all) await this.finish(operation);
  }

  /** Lets all results expire. */
  expireAll(): void {
    for (const operation of this.all) {
      if (operation.status === "COMPLETED") operation.status = "EXPIRED";
      if (operation.file !== null) this.dependencies.files.remove(operation.file);
      operation.file = null;
    }
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer);
  }

  private later(act: () => Promise<void>): void {
    const { delayMs } = this.behaviour;
    if (delayMs === null) return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act().catch((error: unknown) => this.dependencies.unknown(`a bulk operation: ${error}`));
    }, delayMs);
    this.timers.add(timer);
  }

  private async finish(operation: BulkOperation): Promise<void> {
    const run = this.running.get(operation) ?? this.runOnce(operation);
    this.running.set(operation, run);
    try {
      await run;
    } finally {
      this.running.delete(operation);
    }
  }

  private async runOnce(operation: BulkOperation): Promise<void> {
    if (operation.status === "CANCELING") return this.end(operation, "CANCELED");
    if (operation.status !== "CREATED") return;
    operation.status = "RUNNING";
    const file = this.dependencies.files.create();
    const { failure } = this.behaviour;
    try {
      for await (const text of this.linesInOrder(operation, failure?.afterLines ?? Number.POSITIVE_INFINITY)) {
        await file.write(`${text}\n`);
        if (!this.isCanceling(operation)) continue;
        this.dependencies.files.remove(await file.close());
        return this.end(operation, "CANCELED");
      }
      await file.close();
    } catch (error) {
      operation.file = await file.close();
      operation.errorCode = errorCodeOf(error);
      if (operation.errorCode !== "ACCESS_DENIED") this.dependencies.unknown(`a bulk operation: ${error}`);
      return this.end(operation, "FAILED");
    }
    operation.file = await file.close();
    operation.errorCode = failure?.errorCode ?? null;
    this.end(operation, failure === null ? "COMPLETED" : "FAILED");
  }

  /**
   * This is a method, because TypeScript would otherwise assume that the status is still RUNNING. A cancellation can
   * change the status while the operation runs.
   */
  private isCanceling({ status }: BulkOperation): boolean {
    return status === "CANCELING";
  }

  private async *linesInOrder(operation: BulkOperation, atMost: number): AsyncGenerator<string> {
    const { shuffledLines } = this.behaviour;
    const waiting: string[] = [];
    const random = seeded(this.all.length);
    let left = atMost;
    for await (const lines of this.dependencies.lines(operation.query)) {
      for (const { text, isRoot } of lines) {
        if (left <= 0) break;
        left--;
        operation.objectCount++;
        if (isRoot) operation.rootObjectCount++;
        waiting.push(text);
        if (operation.groupObjects || waiting.length > shuffledLines) yield takeAny(waiting, random);
      }
      if (left <= 0) break;
    }
    while (waiting.length > 0) yield takeAny(waiting, random);
  }

  private end(operation: BulkOperation, status: BulkStatus): void {
    operation.status = status;
    operation.completedAt = this.dependencies.now();
    this.dependencies.emit("bulk_operations/finish", bulkBody(operation));
  }
}

/**
 * Takes a random one of the result lines that wait. If a query groups its lines, only one of them waits at a time, so
 * its lines stay in order.
 */
function takeAny(waiting: string[], random: () => number): string {
  const at = Math.floor(random() * waiting.length);
  const taken = waiting[at] ?? "";
  const last = waiting.pop();
  if (last !== undefined && at < waiting.length) waiting[at] = last;
  return taken;
}

/** A linear congruential generator of numbers from 0 to 1. The same seed gives the same numbers. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function errorCodeOf(error: unknown): string {
  const extensions = typeof error === "object" && error !== null && "extensions" in error ? error.extensions : {};
  const isDenied = (extensions as { code?: unknown } | undefined)?.code === "ACCESS_DENIED";
  return isDenied ? "ACCESS_DENIED" : "INTERNAL_SERVER_ERROR";
}
