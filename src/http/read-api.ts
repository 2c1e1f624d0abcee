import { requireAccess } from "../actions/access.ts";
import { type Awaitable, andThen } from "../lib/awaitable.ts";
import type { ReaderQueue } from "../lib/reader-queue.ts";
import type { KeyOwner } from "../store/keys.ts";
import type { AnswerCache } from "./answer-cache.ts";
import type { ApiKeyAuthenticator } from "./api-key-authenticator.ts";
import { compress, encodingFor, SMALLEST_COMPRESSED_BYTES, varyOf } from "./encoding.ts";
import { type EntityTags, hasTag } from "./entity-tags.ts";
import type { KeyLimits } from "./key-limits.ts";
import { isLarge, type LargePages } from "./large-page.ts";
import { isStrict } from "./list-query.ts";
import { lastingHeaders, respond, respondAgain, respondRateLimited } from "./respond.ts";
import { type RouteContext, targetOf } from "./route.ts";

type Headers = Record<string, string>;

/** What was read for an answer. */
export interface Content {
  body: Uint8Array<ArrayBuffer>;
  /** Of the shop, in the snapshot that was read. */
  changeCount: number;
  /** What belongs to this content. */
  headers: Headers;
}

/** Reads content. @throws SdsError for a request that has no answer */
type Read = (owner: KeyOwner) => Awaitable<Content>;

interface Dependencies {
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  authenticator: ApiKeyAuthenticator;
  keyLimits: KeyLimits;
  entityTags: EntityTags;
  answers: AnswerCache;
  readers: ReaderQueue;
  largePages: LargePages;
}

/** What the addresses of the read API have in common. */
export interface ReadApi {
  /**
   * Checks the key, the plan and the rate, in this order, and answers with what `prepare` lets it read.
   * @param prepare checks the request, before it waits for its turn. It is not called for a request whose answer is
   *   known, and the answer may depend on nothing but the shop, path and query
   */
  answer(request: Request, context: RouteContext, prepare: (owner: KeyOwner) => Read): Awaitable<Response>;
}

/** A read that takes longer counts as long for others that wait. */
const LONG_READ_MS = 2;
const CACHE_CONTROL = { "Cache-Control": "private, no-cache" };

export function createReadApi(dependencies: Dependencies): ReadApi {
  const { clock, authenticator, keyLimits, entityTags, answers, readers, largePages } = dependencies;

  function admit(request: Request, client: () => string): Awaitable<KeyOwner> {
    return andThen(authenticator.authenticate(request.headers.get("authorization"), client), (owner) => {
      requireAccess(owner, "API access");
      return owner;
    });
  }

  /** @param isLate whether the content came in a later turn of the event loop than the request */
  function send(
    request: Request,
    { shopId }: KeyOwner,
    { body, changeCount, headers }: Content,
    limits: Headers,
    isLate: boolean,
  ): Awaitable<Response> {
    const target = targetOf(request.url);
    const tag = entityTags(shopId, target, changeCount);
    const lasting = { ...CACHE_CONTROL, ETag: tag, Vary: varyOf(body), ...headers };
    const isSmall = body.length < SMALLEST_COMPRESSED_BYTES;
    answers.keep(shopId, target, {
      changeCount,
      tag,
      headers: lasting,
      body: isSmall ? new Uint8Array(body) : undefined,
    });
    const all = { ...lasting, ...limits };
    if (hasTag(request, tag)) return respond(304, null, all);
    const encoding = encodingFor(request, body);
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

  function readAndSend(
    request: Request,
    owner: KeyOwner,
    read: Read,
    limits: Headers,
    isLate: boolean,
  ): Awaitable<Response> {
    const began = clock();
    const content = read(owner);
    const isLater = content instanceof Promise;
    return andThen(content, (found) => {
      // Large rows, and rows that a filter does not let through, take long in a file engine.
      if (isLarge(found.body) || (!isLater && clock() - began > LONG_READ_MS)) readers.noteLong();
      return send(request, owner, found, limits, isLate || isLater);
    });
  }

  return {
    answer(request, { client }, prepare) {
      return andThen(admit(request, client), (admitted) => {
        const { headers: limits, retryAfterS } = keyLimits.count(admitted.keyId);
        if (retryAfterS !== undefined) return respondRateLimited(retryAfterS, limits);
        // A strict request can be refused where another one has an answer.
        const known = isStrict(request) ? undefined : answers.find(admitted, targetOf(request.url));
        if (known !== undefined) {
          known.made ??= lastingHeaders(known.headers);
          if (hasTag(request, known.tag)) return respondAgain(304, null, known.made, limits);
          if (known.body !== undefined) return respondAgain(200, known.body, known.made, limits);
        }
        const read = prepare(admitted);
        const turn = readers.enter();
        if (turn === undefined) return readAndSend(request, admitted, read, limits, false);
        return (
          turn
            .then(() => admit(request, client))
            // Meanwhile the key may have been revoked, or the removal of the shop may have begun.
            .then((owner) => readAndSend(request, owner, read, limits, true))
        );
      });
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
