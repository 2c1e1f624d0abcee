import { createDocument, type Document, respondDocument } from "../documents.ts";
import type { RouteHandler } from "../route.ts";
import { openApiDocument } from "./document.ts";

/** How long clients may keep the document. Only an upgrade of the program changes the document. */
const MAX_AGE_SECONDS = 300;

/**
 * GET and HEAD /openapi.json. The first request builds the document, because building takes milliseconds.
 * @param serverUrl returns the address of the API, which is known once the program listens
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
