import { createDocument, type Document, respondDocument } from "../documents.ts";
import type { RouteHandler } from "../route.ts";
import { openApiDocument } from "./document.ts";

/** The document changes with the program only. Clients ask again after so many seconds. */
const MAX_AGE_SECONDS = 300;

/**
 * GET and HEAD /openapi.json. The document is made for the first request, because it takes milliseconds, and then kept.
 * @param serverUrl where the API is, once the program listens
 */
export function createOpenApiHandler(serverUrl: () => string): RouteHandler {
  let made: Document | undefined;
  return (request) => {
    made ??= createDocument(JSON.stringify(openApiDocument(serverUrl())));
    return respondDocument(request, made, {
      "Content-Type": "application/json",
      "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}`,
    });
  };
}
