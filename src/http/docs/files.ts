import airbyte from "../../docs/airbyte.yaml" with { type: "text" };
import puller from "../../docs/python/puller.py" with { type: "text" };
import receiver from "../../docs/python/receiver.py" with { type: "text" };
import { createDocument, respondDocument } from "../documents.ts";
import type { Route, RouteHandler } from "../route.ts";

/** Python as plain text, so that a browser shows it. */
const TEXT = "text/plain; charset=utf-8";

/** Files to download without a key: an Airbyte source, programs in Python (docs/api.md, "Ready for your tools"). */
export function docsFileRoutes(): Route[] {
  return [
    file("/docs/airbyte.yaml", airbyte, "application/yaml; charset=utf-8"),
    file("/docs/puller.py", puller, TEXT),
    file("/docs/receiver.py", receiver, TEXT),
  ];
}

function file(path: string, text: string, type: string): Route {
  let document: ReturnType<typeof createDocument> | undefined;
  const handler: RouteHandler = (request) => {
    document ??= createDocument(text);
    // The program may be replaced at any time.
    return respondDocument(request, document, { "Content-Type": type, "Cache-Control": "no-cache" });
  };
  return { path, methods: { GET: handler, HEAD: handler } };
}
