import { afterTest } from "./cleanup.ts";

export interface FakeRow {
  id: string;
  value: number;
}

/** A fake of the API with its own mirror: it serves lists and changes. */
export class FakeApi {
  readonly url: string;
  readonly requests: { path: string; query: Record<string, string>; headers: Headers }[] = [];
  /** Called before each answer. May return another answer, or change rows. */
  before: () => Response | undefined | Promise<Response | undefined> = () => undefined;
  /** Maximum number of rows in a page. */
  pageRows = 250;
  /** Refuses every checkpoint, as a server does for a key of another shop. */
  isOtherShop = false;
  /** Changes with each restore, like the epoch of a database. */
  epoch = 1;
  /** The rows in the order of the list, each with the number of its last change. */
  private readonly mirror = new Map<string, { row: FakeRow; change: number }>();
  private changes = 0;

  /** @param count how many rows it has: ord_0, ord_1 … */
  constructor(count = 0) {
    for (let n = 0; n < count; n++) this.put(`ord_${n}`, n);
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.answer(request) });
    afterTest(() => server.stop(true));
    this.url = `http://127.0.0.1:${server.port}`;
  }

  put(id: string, value: number): void {
    this.changes += 1;
    this.mirror.set(id, { row: { id, value }, change: this.changes });
  }

  /** Restores a backup that lacks these rows. */
  restore(...lost: string[]): void {
    for (const id of lost) this.mirror.delete(id);
    this.epoch += 1;
  }

  rows(): FakeRow[] {
    return [...this.mirror.values()].map(({ row }) => row).sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  private async answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const query = Object.fromEntries(url.searchParams);
    this.requests.push({ path: url.pathname, query, headers: request.headers });
    return (await this.before()) ?? this.page(url.pathname, query);
  }

  private page(path: string, { since, cursor, limit = "50" }: Record<string, string>): Response {
    const [, id] = /^\/api\/v1\/orders\/(.+)$/.exec(path) ?? [];
    if (id !== undefined) {
      const found = this.mirror.get(decodeURIComponent(id));
      return found === undefined ? refusal(404, "not_found") : Response.json(found.row);
    }
    const size = Math.min(Number(limit), this.pageRows);
    return since === undefined ? this.list(cursor, size) : this.changed(since, size);
  }

  private list(cursor: string | undefined, size: number): Response {
    const all = this.rows();
    if (cursor !== undefined && !this.mirror.has(cursor)) return refusal(400, "bad_cursor", {}, "not_issued");
    const start = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
    const data = all.slice(start, start + size);
    const nextCursor = start + size < all.length ? (data.at(-1)?.id ?? null) : null;
    return this.found(data, nextCursor, this.changes);
  }

  private changed(since: string, size: number): Response {
    const [epoch, number] = since.split("~").map(Number);
    if (this.isOtherShop) return refusal(400, "bad_cursor", {}, "other_shop");
    if (epoch !== this.epoch || number === undefined) return refusal(400, "bad_cursor", {}, "restored");
    const later = [...this.mirror.values()].filter(({ change }) => change > number).sort((a, b) => a.change - b.change);
    const page = later.slice(0, size);
    const reached = later.length > size ? (page.at(-1)?.change ?? 0) : this.changes;
    const checkpoint = `${this.epoch}~${reached}`;
    return this.found(
      page.map(({ row }) => row),
      later.length > size ? checkpoint : null,
      reached,
    );
  }

  private found(data: FakeRow[], nextCursor: string | null, reached: number): Response {
    return Response.json(
      { data, page: { limit: data.length, nextCursor } },
      { headers: { "X-Checkpoint": `${this.epoch}~${reached}` } },
    );
  }
}

export function refusal(status: number, code: string, headers: Record<string, string> = {}, reason?: string): Response {
  return Response.json({ error: { code, message: `It is ${reason ?? code}.`, reason } }, { status, headers });
}
