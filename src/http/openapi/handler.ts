import { CryptoHasher } from "bun";
import { encodeBody } from "../encoding.ts";
import { hasTag } from "../entity-tags.ts";
import { respond } from "../respond.ts";
import type { RouteHandler } from "../route.ts";
import { openApiDocument } from "./document.ts";

/** The document changes with the program only. Clients ask again after so many seconds. */
const MAX_AGE_SECONDS = 300;

/**
 * GET and HEAD /openapi.json. The document is made for the first request, because it takes milliseconds, and then kept.
 * @param serverUrl where the API is, once the program listens
 */
export function createOpenApiHandler(serverUrl: () => string): RouteHandler {
  let made: { bytes: Uint8Array<ArrayBuffer>; etag: string } | undefined;
  return (request) => {
    made ??= makeDocument(serverUrl());
    const own = {
      "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}`,
      ETag: made.etag,
      Vary: "Accept-Encoding",
    };
    if (hasTag(request, made.etag)) return respond(304, null, own);
    const { bytes, headers: encoding } = encodeBody(request, made.bytes);
    return respond(200, bytes, { ...encoding, ...own });
  };
}

function makeDocument(serverUrl: string): { bytes: Uint8Array<ArrayBuffer>; etag: string } {
  const bytes = new TextEncoder().encode(JSON.stringify(openApiDocument(serverUrl)));
  return { bytes, etag: `W/"${new CryptoHasher("sha256").update(bytes).digest("hex").slice(0, 24)}"` };
}
