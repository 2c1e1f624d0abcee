import { CryptoHasher } from "bun";
import airbyte from "../../docs/airbyte.yaml" with { type: "text" };
import puller from "../../docs/python/puller.py" with { type: "text" };
import receiver from "../../docs/python/receiver.py" with { type: "text" };
import { newRequestId } from "../respond.ts";
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
  const etag = `"${new CryptoHasher("sha256").update(text).digest("hex").slice(0, 16)}"`;
  const handler: RouteHandler = ({ headers }) => {
    const isKnown = headers.get("if-none-match") === etag;
    return new Response(isKnown ? null : text, {
      status: isKnown ? 304 : 200,
      headers: {
        "Content-Type": type,
        // The program may be replaced at any time.
        "Cache-Control": "no-cache",
        ETag: etag,
        "X-Content-Type-Options": "nosniff",
        "X-Request-Id": newRequestId(),
      },
    });
  };
  return { path, methods: { GET: handler, HEAD: handler } };
}
