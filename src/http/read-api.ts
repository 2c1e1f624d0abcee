import { requireAccess } from "../actions/access.ts";
import type { ReaderQueue } from "../lib/reader-queue.ts";
import type { KeyOwner } from "../store/keys.ts";
import type { ApiKeyAuthenticator } from "./api-key-authenticator.ts";
import { compress, encodingFor, varyOf } from "./encoding.ts";
import { type EntityTags, hasTag } from "./entity-tags.ts";
import type { KeyLimits } from "./key-limits.ts";
import { isLarge, type LargePages } from "./large-page.ts";
import { respond, respondRateLimited } from "./respond.ts";
import type { RouteContext } from "./route.ts";

type Headers = Record<string, string>;

/** What was read for an answer. */
export interface Content {
  body: Uint8Array<ArrayBuffer>;
  /** Of the shop, in the snapshot that was read. */
  changeCount: number;
  /** What belongs to this content. An answer that it has not changed has them too. */
  headers: Headers;
}

/** How content is read. */
interface Read {
  /** @throws SdsError for a request that has no answer */
  read(owner: KeyOwner): Promise<Content>;
  /** Whether the content comes in a later turn of the event loop. */
  isLater: boolean;
}

interface Dependencies {
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  authenticator: ApiKeyAuthenticator;
  keyLimits: KeyLimits;
  entityTags: EntityTags;
  readers: ReaderQueue;
  largePages: LargePages;
}

/** What the addresses of the read API have in common. */
export interface ReadApi {
  /**
   * Checks the key, the plan and the rate, in this order, and answers with what `prepare` lets it read.
   * @param prepare checks the request, before it waits for its turn
   */
  answer(request: Request, context: RouteContext, prepare: (owner: KeyOwner) => Read): Promise<Response>;
}

/** A read that takes longer counts as long for others that wait. */
const LONG_READ_MS = 2;
const CACHE_CONTROL = { "Cache-Control": "private, no-cache" };

export function createReadApi({
  clock,
  authenticator,
  keyLimits,
  entityTags,
  readers,
  largePages,
}: Dependencies): ReadApi {
  async function authenticate(request: Request, client: () => string): Promise<KeyOwner> {
    const owner = await authenticator.authenticate(request.headers.get("authorization"), client);
    requireAccess(owner, "API access");
    return owner;
  }

  /** Sends content, compressed if the client accepts that. */
  async function send(
    request: Request,
    shopId: number,
    content: Content,
    tag: string,
    limits: Headers,
    isLate: boolean,
  ): Promise<Response> {
    const { body } = content;
    const own = { ...CACHE_CONTROL, ETag: tag, Vary: varyOf(body), ...content.headers };
    entityTags.remember(tag, own);
    if (hasTag(request, tag)) return respond(304, null, { ...own, ...limits });
    const encoding = encodingFor(request, body);
    const all = { ...own, ...limits };
    if (isLarge(body))
      return encoding === undefined
        ? largePages.respond(request, shopId, body, all)
        : largePages.respondCompressed(request, shopId, body, encoding, all);
    const bytes = encoding === undefined ? body : compress[encoding](body);
    return respond(
      200,
      isLate ? streamOf(bytes) : bytes,
      encoding === undefined ? all : { ...all, "Content-Encoding": encoding },
    );
  }

  return {
    async answer(request, { client }, prepare) {
      let owner = await authenticate(request, client);
      const { headers: limits, retryAfterS } = keyLimits.count(owner.keyId);
      if (retryAfterS !== undefined) return respondRateLimited(retryAfterS, limits);
      const { read, isLater } = prepare(owner);
      const tagOf = entityTags.tagsOf(owner.shopId, request.url);
      const remembered = entityTags.rememberedFor(request, tagOf(owner.changeCount));
      if (remembered !== undefined) return respond(304, null, { ...remembered, ...limits });
      const turn = readers.enter();
      if (turn !== undefined) {
        await turn;
        // Meanwhile the key may have been revoked, or the removal of the shop may have begun.
        owner = await authenticate(request, client);
      }
      const began = clock();
      const content = await read(owner);
      // Large rows, and rows that a filter does not let through, take long in a file engine.
      if (isLarge(content.body) || (!isLater && clock() - began > LONG_READ_MS)) readers.noteLong();
      return send(request, owner.shopId, content, tagOf(content.changeCount), limits, turn !== undefined || isLater);
    },
  };
}

/**
 * The body of an answer that comes in a later turn of the event loop than its request. Bun sends large bytes in dozens
 * of system calls then, one for each part of each header, and a stream in two.
 */
function streamOf(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}
