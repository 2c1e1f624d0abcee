import { requireAccess } from "../../actions/access.ts";
import type { ReaderQueue } from "../../lib/reader-queue.ts";
import { type Awaitable, andThen } from "../../lib/waits.ts";
import type { KeyOwner } from "../../store/port/keys.ts";
import type { Snapshot } from "../../store/port/pages.ts";
import { type Bytes, compress, encodingFor, SMALLEST_COMPRESSED_BYTES, varyOf } from "../encoding.ts";
import { type EntityTags, hasTag } from "../entity-tags.ts";
import type { RequestLimits } from "../request-limits.ts";
import { type HeaderFields, lastingHeaders, respond, respondAgain, respondRateLimited } from "../respond.ts";
import { type RouteContext, targetOf } from "../routes.ts";
import type { AnswerCache } from "./answer-cache.ts";
import type { ApiKeyAuthenticator } from "./api-key-authenticator.ts";
import { isLarge, type LargePages } from "./large-page.ts";
import { isStrict } from "./list-query.ts";

/** The content of an answer. */
export interface Content {
  body: Bytes;
  /** The state of the shop's data at the time of the read. */
  snapshot: Snapshot;
  /** Headers of this content. */
  headers: HeaderFields;
}

/** Reads content. @throws SdsError if the request is refused */
type Read = (owner: KeyOwner) => Awaitable<Content>;

interface Dependencies {
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  authenticator: ApiKeyAuthenticator;
  keyLimits: RequestLimits;
  entityTags: EntityTags;
  answers: AnswerCache;
  readers: ReaderQueue;
  largePages: LargePages;
}

/** The steps that all paths of the read API share. */
export interface ReadApi {
  /**
   * Checks the key, the plan and the rate limit, in this order. Then reads the content and answers.
   * @param prepare checks the request before the request waits for its turn, and returns the function that reads. A
   *   cached answer is sent without this check. So the answer may depend only on the shop, path, query and whether the
   *   request is strict
   */
  answer(request: Request, context: RouteContext, prepare: (owner: KeyOwner) => Read): Awaitable<Response>;
  /**
   * Does the same as `answer` for JSON that can change while the shop's rows stay the same. So the answer is not
   * cached, and its tag is computed from the JSON.
   */
  answerFresh(
    request: Request,
    context: RouteContext,
    read: (owner: KeyOwner) => Awaitable<string>,
  ): Awaitable<Response>;
}

/** Minimum duration of a long read. After a long read, the next reader waits for another turn of the event loop. */
const LONG_READ_MS = 2;
const CACHE_CONTROL = { "Cache-Control": "private, no-cache" };

export function createReadApi(dependencies: Dependencies): ReadApi {
  const { keyLimits, entityTags, answers, readers } = dependencies;

  /** Calls `next` with the owner of the key and the headers of the rate limit, unless the limit is exceeded. */
  function afterLimit(
    request: Request,
    context: RouteContext,
    next: (owner: KeyOwner, limits: HeaderFields) => Awaitable<Response>,
  ): Awaitable<Response> {
    return andThen(admit(dependencies, request, context), (owner) => {
      const { headers, retryAfterS } = keyLimits.count(owner.keyId);
      return retryAfterS === undefined ? next(owner, headers) : respondRateLimited(retryAfterS, headers);
    });
  }

  return {
    answer(request, context, prepare) {
      return afterLimit(request, context, (admitted, limits) => {
        const known = answers.find(admitted, cacheKeyOf(request));
        if (known !== undefined) {
          known.sentHeaders ??= lastingHeaders(known.headers);
          if (hasTag(request, known.tag)) return respondAgain(304, null, known.sentHeaders, limits);
          if (known.body !== undefined) return respondAgain(200, known.body, known.sentHeaders, limits);
        }
        const read = prepare(admitted);
        const turn = readers.enter();
        if (turn === undefined) return readAndSend(dependencies, { request, owner: admitted, read, limits });
        // While the request waited, its key may have been revoked, or the removal of its shop may have begun.
        const again = turn.then(() => admit(dependencies, request, context));
        return again.then((owner) => readAndSend(dependencies, { request, owner, read, limits, isLate: true }));
      });
    },

    answerFresh(request, context, read) {
      return afterLimit(request, context, (owner, limits) =>
        andThen(read(owner), (json) => {
          const tag = entityTags(owner, `${targetOf(request.url)} ${json}`, { lastChange: 0 });
          const headers = { ...CACHE_CONTROL, ETag: tag, Vary: "Authorization", ...limits };
          return hasTag(request, tag) ? respond(304, null, headers) : respond(200, json, headers);
        }),
      );
    },
  };
}

function admit({ authenticator }: Dependencies, request: Request, context: RouteContext): Awaitable<KeyOwner> {
  return andThen(authenticator.authenticate(request.headers.get("authorization"), context.client), (owner) => {
    context.shop = owner.domain;
    requireAccess(owner, "API access");
    return owner;
  });
}

interface AdmittedRequest {
  request: Request;
  owner: KeyOwner;
  read: Read;
  /** The headers of the rate limit. */
  limits: HeaderFields;
  /** Whether the answer is sent in a later turn of the event loop than the turn in which the request arrived. */
  isLate?: boolean;
}

function readAndSend(dependencies: Dependencies, admitted: AdmittedRequest): Awaitable<Response> {
  const { clock, readers } = dependencies;
  const began = clock();
  const content = admitted.read(admitted.owner);
  const isLater = content instanceof Promise;
  return andThen(content, (found) => {
    // SQLite blocks the event loop while it reads large rows or scans rows for a filter. So the next reader waits for
    // another turn.
    if (isLarge(found.body) || (!isLater && clock() - began > LONG_READ_MS)) readers.noteLong();
    return send(dependencies, isLater ? { ...admitted, isLate: true } : admitted, found);
  });
}

function send(
  { entityTags, answers, largePages }: Dependencies,
  { request, owner, limits, isLate = false }: AdmittedRequest,
  { body, snapshot, headers }: Content,
): Awaitable<Response> {
  const { shopId, branch } = owner;
  const tag = entityTags(owner, targetOf(request.url), snapshot);
  const lasting = { ...CACHE_CONTROL, ETag: tag, Vary: varyOf(body), ...headers };
  const isSmall = body.length < SMALLEST_COMPRESSED_BYTES;
  const keptBody = isSmall ? new Uint8Array(body) : undefined;
  const isKnown = hasTag(request, tag);
  // A larger answer is cached without its body, and only if the client already has the answer. The cache can then
  // answer the next request with 304. If all other answers were cached too, garbage collections would take a tenth of
  // the processor time.
  if (isSmall || isKnown)
    answers.keep(shopId, cacheKeyOf(request), {
      changeCount: snapshot.changeCount,
      branch,
      tag,
      headers: lasting,
      body: keptBody,
    });
  const all = { ...lasting, ...limits };
  if (isKnown) return respond(304, null, all);
  const encoding = encodingFor(request, body);
  if (isLarge(body)) return largePages.respond(request, shopId, body, all, encoding);
  const bytes = encoding === undefined ? body : compress[encoding](body);
  const sent = encoding === undefined ? all : { ...all, "Content-Encoding": encoding };
  return respond(200, isLate ? streamOf(bytes) : bytes, sent);
}

/**
 * Returns path and query, and whether the request is strict. A strict request can get another answer than a lenient
 * request.
 */
function cacheKeyOf(request: Request): string {
  const target = targetOf(request.url);
  return isStrict(request) ? `strict ${target}` : target;
}

/**
 * Makes a stream of the bytes of an answer that is sent in a later turn of the event loop. Bun sends a stream in two
 * system calls, but would send a large byte array in dozens of calls.
 */
function streamOf(bytes: Bytes): ReadableStream<Bytes> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}
