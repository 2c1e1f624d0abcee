import type { Exact } from "./exact-json.ts";
import { exactJson } from "./exact-json.ts";
import {
  type AttemptRow,
  type ContractRow,
  copyOf,
  isDeleted,
  isKind,
  type Kind,
  type Row,
  type RowOf,
  TYPE_NAME,
} from "./rows.ts";
import type {
  AppSubscription,
  AppSubscriptionInput,
  FieldFaultCode,
  ShopDependencies,
  ShopOptions,
} from "./shop-options.ts";
import { SORT_VALUES, SortedRows } from "./sorted-rows.ts";
import { Tokens } from "./tokens.ts";
import type { Webhook } from "./webhook.ts";

/** The rows of a shop by id and in order, its clock, its tokens, and its webhooks. The subclasses change rows. */
export class ShopRows {
  domain: string;
  readonly number: number;
  readonly name: string;
  readonly timezone: string;
  scopes: readonly string[];
  readonly attemptIds: boolean;
  readonly firstId: bigint;
  readonly tokens: Tokens;
  /** Webhooks, the oldest first. */
  readonly outgoing: Webhook[] = [];
  /** Accepted triggers. `raw` is the text of the request, in which ids are exact. */
  readonly workflows: { handle: string; payload: unknown; raw: string }[] = [];
  readonly appSubscriptions: AppSubscription[] = [];
  currency: string;
  /** Exchange rates of new orders: the value of one unit of a foreign currency in the shop's currency. */
  rates: Record<string, number> = {};
  installed = true;
  /**
   * `frozen`: the shop has not paid the platform. `blocked`: the shop refuses the app. `closed`: the shop was closed.
   * `locked`: the platform locked the shop. `suspected`: the platform mistakes our requests for an attack.
   */
  access: "open" | "frozen" | "blocked" | "closed" | "locked" | "suspected" = "open";
  /**
   * Which protected customer data the app may read. Level 0: nothing. Level 1: customers and orders. Level 2: also the
   * names and e-mail addresses of customers.
   */
  approvedLevel: 0 | 1 | 2 = 2;
  /** The shop's new domain. Requests for the old domain are redirected. */
  movedTo: string | undefined;
  /** See `breakField`. Codes by the number of the row and the name of the field. */
  private readonly brokenFields = new Map<string, FieldFaultCode>();
  /**
   * If true, an answer with a broken field has an error with the field's path, and all other data. If false, an answer
   * with the code INTERNAL_SERVER_ERROR has no data, and its error has no path.
   */
  errorPaths = true;
  /**
   * How the platform answers queries for cycles after a contract's last cycle. `listed`: like queries for other cycles.
   * `cut`: a list ends with the last cycle. `refused`: the query is refused. `null`: such a cycle is null, and a list
   * with it fails.
   */
  cyclesAfterEnd: "listed" | "cut" | "refused" | "null" = "listed";
  /** After this many rows, a chain of pages ends, although there are further rows. */
  maxRows = Number.POSITIVE_INFINITY;
  /** Maximum number of rows on a page, if the query asks for more. A few rows then need several pages. */
  maxPageRows = Number.POSITIVE_INFINITY;
  /**
   * The lag of each replica of the platform's database. The replicas answer queries in turn. Empty: no replica is late.
   */
  replicaLagsMs: readonly number[] = [];
  /** Former states of rows, for late replicas. `state` is null for the time before the row was added. */
  private readonly earlier: { row: Row; state: Row | null; at: number }[] = [];
  private queryCount = 0;
  protected lastOrderNumber = 1000;
  private readonly rows: (Row | undefined)[] = [];
  private readonly sorted = new Map<Kind, Map<string, SortedRows<Row>>>();
  private readonly dependencies: ShopDependencies;
  private eventId: string | undefined;
  private lastRevision = 0;

  constructor(domain: string, options: ShopOptions, dependencies: ShopDependencies) {
    this.domain = domain;
    this.name = options.name ?? domain.replace(/\..*/, "");
    this.currency = options.currency ?? "USD";
    // This zone has no daylight saving time, so webhooks have the same offset all year.
    this.timezone = options.timezone ?? "America/Bogota";
    this.scopes = options.scopes ?? [
      "read_own_subscription_contracts",
      "read_customers",
      "read_orders",
      "read_products",
    ];
    this.attemptIds = options.attemptIds ?? true;
    this.firstId = options.firstId ?? dependencies.firstId;
    this.number = dependencies.shopNumber;
    this.dependencies = dependencies;
    const life = dependencies.tokenLife;
    this.tokens = new Tokens(dependencies.now, { clientCredentials: life ?? 86_399, refreshed: life ?? 3600 });
    if (options.subscription !== undefined) this.appSubscriptions.push(this.newAppSubscription(options.subscription));
  }

  protected newAppSubscription({ name, status, planHandle }: AppSubscriptionInput): AppSubscription {
    const handle = planHandle === undefined ? name.toLowerCase().replaceAll(" ", "-") : planHandle;
    return { n: this.reserve(1), name, status, planHandle: handle, createdAt: this.now() };
  }

  /**
   * Breaks a field, so that it always fails. The field belongs to the object, or to a part of the object, such as
   * `LineItem.contract` of an order.
   * @param field with the name of its type, such as `SubscriptionContract.status`
   * @param code null ends the fault
   */
  breakField(id: string, field: string, code: FieldFaultCode | null = "INTERNAL_SERVER_ERROR"): void {
    const row = this.findAny(id);
    if (row === undefined) throw new Error(`the stand-in has no ${id}`);
    if (code === null) this.brokenFields.delete(`${row.n} ${field}`);
    else this.brokenFields.set(`${row.n} ${field}`, code);
  }

  mendFields(): void {
    this.brokenFields.clear();
  }

  /** The code with which a field fails; undefined if it works. @param source the row, or a part of a row */
  faultOf(source: unknown, field: string): string | undefined {
    if (this.brokenFields.size === 0) return undefined;
    const { kind, order, contract } = source as { kind?: string; order?: Row; contract?: Row };
    const owner = kind === undefined || kind === "cycle" ? (order ?? contract) : (source as Row);
    return this.brokenFields.get(`${owner?.n} ${field}`);
  }

  /** The time in whole seconds, like all times of the platform. */
  now(): number {
    return Math.floor(this.dependencies.now() / 1000) * 1000;
  }

  /** Issues a permanent access token. */
  issueToken = (): string => this.tokens.issue();
  issuePair = (): { accessToken: string; refreshToken: string } => this.tokens.issuePair();
  revokeTokens = (): void => this.tokens.revoke();
  endRefreshTokens = (): void => this.tokens.endRefreshTokens();

  idOf(n: number): bigint {
    return this.firstId + BigInt(n);
  }

  gid(row: Row): string {
    return `gid://shopify/${TYPE_NAME[row.kind]}/${this.idOf(row.n)}`;
  }

  /** Revisions are above 2^53 too, and have gaps. */
  revisionOf(contract: ContractRow): string {
    return String(9_007_199_300_000_000n + BigInt(contract.revision));
  }

  protected nextRevision(): number {
    this.lastRevision += 1 + (this.lastRevision % 3);
    return this.lastRevision;
  }

  keyOf(attempt: AttemptRow): string {
    return `key-${this.idOf(attempt.n)}`;
  }

  /** The row with a gid. */
  findAny(id: string): Row | undefined {
    const [, type, digits] = /^gid:\/\/shopify\/(\w+)\/(\d+)$/.exec(id) ?? [];
    const row = digits === undefined ? undefined : this.rows[Number(BigInt(digits) - this.firstId)];
    return row !== undefined && TYPE_NAME[row.kind] === type && !isDeleted(row) ? row : undefined;
  }

  find<K extends Kind>(kind: K, id: string): RowOf[K] | undefined {
    const row = this.findAny(/^\d+$/.test(id) ? `gid://shopify/${TYPE_NAME[kind]}/${id}` : id);
    return row !== undefined && isKind(row, kind) ? row : undefined;
  }

  /** The gids of all rows of a kind, the oldest first. */
  ids(kind: Kind): string[] {
    return (this.inOrder(kind, "ID")?.rows ?? []).map((row) => this.gid(row));
  }

  protected need<K extends Kind>(kind: K, id: string): RowOf[K] {
    const row = this.find(kind, id);
    if (row === undefined) throw new Error(`${this.domain} has no ${kind} ${id}`);
    return row;
  }

  protected reserve(count: number): number {
    const n = this.rows.length;
    for (let taken = 0; taken < count; taken++) this.rows.push(undefined);
    return n;
  }

  /** Reads from the next replica, which shows all rows as they were some time ago. */
  fromReplica<T>(read: () => T): T {
    const lagMs = this.replicaLagsMs[this.queryCount++ % this.replicaLagsMs.length] ?? 0;
    const since = this.dependencies.now() - lagMs;
    const undone = lagMs === 0 ? [] : this.earlier.filter(({ at }) => at > since).toReversed();
    const redo = undone.map(({ row, state }) => this.replace(row, state));
    try {
      return read();
    } finally {
      for (const redoOne of redo.toReversed()) redoOne();
    }
  }

  /** Gives a row another state. @returns a function that brings the former state back */
  private replace(row: Row, state: Row | null): () => void {
    const former = this.rows[row.n] === undefined ? null : copyOf(row);
    const orders = [...(this.sorted.get(row.kind)?.values() ?? [])];
    if (former !== null && !isDeleted(row)) for (const sorted of orders) sorted.remove(row);
    Object.assign(row, state);
    this.rows[row.n] = state === null ? undefined : row;
    if (state !== null && !isDeleted(row)) for (const sorted of orders) sorted.add(row);
    return () => void this.replace(row, former);
  }

  /** Keeps the current state of a row before a change. */
  protected remember(row: Row, state: Row | null = copyOf(row)): void {
    const at = this.dependencies.now();
    const oldest = at - Math.max(...this.replicaLagsMs);
    while (this.earlier[0] !== undefined && this.earlier[0].at < oldest) this.earlier.shift();
    if (this.replicaLagsMs.length > 0) this.earlier.push({ row, state, at });
  }

  protected add<R extends Row>(row: R): R {
    this.remember(row, null);
    this.rows[row.n] = row;
    for (const sorted of this.sorted.get(row.kind)?.values() ?? []) sorted.add(row);
    return row;
  }

  /** Adds many rows. They are sorted when somebody needs their order. */
  protected addAll(rows: Iterable<Row>): void {
    for (const row of rows) this.rows[row.n] = row;
    this.sorted.clear();
  }

  /** Changes a row, updates its time and revision, and moves it to its new position in each sort order. */
  protected change<R extends Row>(row: R, edit: (row: R) => void): void {
    this.remember(row);
    const orders = [...(this.sorted.get(row.kind)?.values() ?? [])];
    for (const sorted of orders) sorted.remove(row);
    edit(row);
    if ("updatedAt" in row) row.updatedAt = this.now();
    if (row.kind === "contract") row.revision = this.nextRevision();
    if (!isDeleted(row)) for (const sorted of orders) sorted.add(row);
  }

  /** All rows of a kind by a sort key of the schema; undefined for a sort key that the stand-in does not have. */
  inOrder(kind: Kind, sortKey: string): SortedRows<Row> | undefined {
    const readValue = SORT_VALUES[sortKey];
    if (readValue === undefined) return undefined;
    const orders = this.sorted.get(kind) ?? new Map<string, SortedRows<Row>>();
    this.sorted.set(kind, orders);
    let sorted = orders.get(sortKey);
    if (sorted === undefined) {
      const rows = this.rows.filter((row): row is Row => row !== undefined && row.kind === kind && !isDeleted(row));
      sorted = new SortedRows(rows, readValue);
      orders.set(sortKey, sorted);
    }
    return sorted;
  }

  /** Runs `act` as one action of the merchant: all its webhooks have the same event id. */
  protected together<T>(act: () => T): T {
    if (this.eventId !== undefined) return act();
    this.eventId = crypto.randomUUID();
    try {
      return act();
    } finally {
      this.eventId = undefined;
    }
  }

  protected emit(topic: string, wholePayload: Exact): void {
    const payload = this.dependencies.payloadFor(topic, wholePayload);
    if (payload === undefined) return;
    const triggeredAt = `${new Date(this.dependencies.now()).toISOString().slice(0, -1)}000000Z`;
    const eventId = this.eventId ?? crypto.randomUUID();
    const webhook = {
      shop: this.domain,
      topic,
      body: exactJson(payload),
      id: crypto.randomUUID(),
      eventId,
      triggeredAt,
    };
    this.outgoing.push(webhook);
    this.dependencies.onWebhook(webhook);
  }
}
