import { CryptoHasher } from "bun";
import { newRequestId } from "../respond.ts";

/** A text that the program serves as it is. */
export interface Document {
  body: Uint8Array<ArrayBuffer>;
  /** A name of its content, of 16 characters. */
  version: string;
}

export function createDocument(text: string): Document {
  const body = Uint8Array.from(Buffer.from(text));
  return { body, version: new CryptoHasher("sha256").update(body).digest("hex").slice(0, 16) };
}

/**
 * The document, or 304 without it if the browser has it already (RFC 9110, 13.1.2).
 * @param headers beside ETag, X-Request-Id and X-Content-Type-Options
 */
export function respondDocument(request: Request, document: Document, headers: Record<string, string>): Response {
  const etag = `"${document.version}"`;
  const isKnown = isAmong(request.headers.get("if-none-match"), etag);
  return new Response(isKnown ? null : document.body, {
    status: isKnown ? 304 : 200,
    headers: { ...headers, ETag: etag, "X-Content-Type-Options": "nosniff", "X-Request-Id": newRequestId() },
  });
}

/** A proxy that compresses answers makes their ETags weak, so the mark of a weak one does not count. */
function isAmong(list: string | null, etag: string): boolean {
  const tags = (list ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes("*") || tags.includes(etag);
}
