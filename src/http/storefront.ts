import { scopeStyle, styleRefusal } from "../actions/style.ts";
import { messageOf } from "../domain/error.ts";
import { hasAccess, isDomain } from "../domain/shop.ts";
import type { Log } from "../lib/log.ts";
import { type Awaitable, andThen, nextTurn } from "../lib/waits.ts";
import type { StyledShop, StyleStore } from "../store/port/styles.ts";
import { createDocument, type Document, respondDocument } from "./documents.ts";
import { respondNotFound } from "./respond.ts";
import { type RouteHandler, urlPathOf } from "./routes.ts";

const HEADERS = {
  "Content-Type": "text/css; charset=utf-8",
  "Cache-Control": "public, max-age=86400",
  "Access-Control-Allow-Origin": "*",
};
/** Maximum memory for the stylesheets of all shops. A stylesheet takes at most about 0.5 MiB. */
const MAX_CACHED_BYTES = 64 * 1024 * 1024;
/** Memory that a stylesheet needs in addition to its bytes. */
const OVERHEAD_BYTES = 1024;

const EMPTY = createDocument("");

/**
 * GET and HEAD /storefront/DOMAIN/widget.css. An unknown shop costs the same read as a known shop. Otherwise the
 * response time would tell which shops exist.
 */
export function createWidgetStyleHandler(
  styles: Pick<StyleStore, "shopOf" | "find">,
  log: Log,
  maxCachedBytes = MAX_CACHED_BYTES,
): RouteHandler {
  const stylesheets = new Stylesheets(styles, log, maxCachedBytes);
  return (request, context) => {
    const { id } = context;
    // The empty domain replaces a malformed or percent-encoded domain. No shop has an empty domain, so this gives 404.
    const domain = isDomain(id) && !urlPathOf(request.url).includes("%") ? id : "";
    return andThen(styles.shopOf(domain), (shop) => {
      if (shop === undefined) return respondNotFound();
      context.shop = domain;
      return andThen(stylesheets.of(shop), (document) => respondDocument(request, document, HEADERS));
    });
  };
}

/**
 * Keeps scoped stylesheets in memory. The key is the hash of the source. The database stores only the source, so a fix
 * of the scoper also changes styles that an earlier version accepted.
 */
class Stylesheets {
  /** The least recently used stylesheet comes first. */
  private readonly documents = new Map<string, Document>();
  /**
   * Stylesheets that are being made. The key is shop and hash. Requests during this time wait for the same stylesheet.
   * Two shops with the same hash share no entry. One of them can save a new source before the read, and the other shop
   * must not get that source.
   */
  private readonly making = new Map<string, Promise<Document>>();
  /**
   * Resolves when the next stylesheet may be scoped. Each turn of the event loop scopes only one stylesheet, because a
   * large stylesheet takes up to 100 ms.
   */
  private turn = Promise.resolve();
  private readonly styles: Pick<StyleStore, "find">;
  private readonly log: Log;
  private readonly maxBytes: number;
  private bytes = 0;

  constructor(styles: Pick<StyleStore, "find">, log: Log, maxBytes: number) {
    this.styles = styles;
    this.log = log;
    this.maxBytes = maxBytes;
  }

  of({ shopId, plan, hash }: StyledShop): Awaitable<Document> {
    if (hash === null || !hasAccess(plan)) return EMPTY;
    const known = this.documents.get(hash);
    if (known !== undefined) {
      this.documents.delete(hash);
      this.documents.set(hash, known);
      return known;
    }
    const name = `${shopId} ${hash}`;
    const making = this.making.get(name) ?? this.make(shopId).finally(() => this.making.delete(name));
    this.making.set(name, making);
    return making;
  }

  private async make(shopId: number): Promise<Document> {
    const style = await this.styles.find(shopId);
    if (style === undefined) return EMPTY;
    this.turn = this.turn.then(nextTurn);
    await this.turn;
    const document = this.documents.get(style.hash) ?? createDocument(await this.scoped(shopId, style.source));
    this.keep(style.hash, document);
    return document;
  }

  /** Scopes a stored source. Returns an empty stylesheet if this version refuses the source. */
  private async scoped(shopId: number, source: string): Promise<string> {
    try {
      const scoped = await scopeStyle(source);
      if ("css" in scoped) return scoped.css;
      this.log.warn("a stored style is refused, so the widget has no style", { shopId, refusal: styleRefusal(scoped) });
    } catch (thrown) {
      this.log.error("a stored style cannot be scoped, so the widget has no style", {
        shopId,
        error: messageOf(thrown),
      });
    }
    return "";
  }

  private keep(hash: string, document: Document): void {
    if (!this.documents.has(hash)) this.bytes += sizeOf(document);
    this.documents.set(hash, document);
    for (const [oldest, { plain }] of this.documents) {
      if (this.bytes <= this.maxBytes) return;
      this.documents.delete(oldest);
      this.bytes -= sizeOf({ plain });
    }
  }
}

/**
 * Returns an upper bound for the bytes of a document in all its forms. Both compressed forms together are smaller than
 * the plain form, so twice the plain form is enough.
 */
function sizeOf({ plain }: Pick<Document, "plain">): number {
  return 2 * plain.length + OVERHEAD_BYTES;
}
