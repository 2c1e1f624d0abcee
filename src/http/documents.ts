import { CryptoHasher } from "bun";
import { type Bytes, type Encoding, encodingFor } from "./encoding.ts";
import { hasTag } from "./entity-tags.ts";
import { newRequestId } from "./respond.ts";
import { queryOf } from "./routes.ts";

/** A file that the program serves unchanged. */
export interface Document {
  /** 16 characters of a hash of the content. */
  version: string;
  plain: Bytes;
  compressed: (encoding: Encoding) => Bytes;
}

/** Compresses a document at the default level, because most documents are compressed once and sent often. */
const COMPRESS_DOCUMENT: Record<Encoding, (bytes: Bytes) => Bytes> = {
  zstd: (bytes) => new Uint8Array(Bun.zstdCompressSync(bytes)),
  gzip: (bytes) => Bun.gzipSync(bytes),
};

export function createDocument(content: string | Bytes): Document {
  const plain = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const compressed = new Map<Encoding, Bytes>();
  return {
    version: new CryptoHasher("sha256").update(plain).digest("hex").slice(0, 16),
    plain,
    compressed(encoding) {
      const bytes = compressed.get(encoding) ?? COMPRESS_DOCUMENT[encoding](plain);
      compressed.set(encoding, bytes);
      return bytes;
    },
  };
}

/** Headers that let scripts of all sites read a document. Only for documents that are the same for everybody. */
export const READABLE_ANYWHERE = { "Access-Control-Allow-Origin": "*" };

/** Responds with the document, compressed if possible. If the browser has the document already, responds with 304. */
export function respondDocument(request: Request, document: Document, headers: Record<string, string>): Response {
  // A weak tag, because the document can be compressed in several ways (RFC 9110, section 8.8.3).
  const tag = `W/"${document.version}"`;
  const common = {
    ...headers,
    ETag: tag,
    Vary: "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
    "X-Request-Id": newRequestId(),
  };
  if (hasTag(request, tag)) return new Response(null, { status: 304, headers: common });
  const encoding = encodingFor(request, document.plain);
  if (encoding === undefined) return new Response(document.plain, { headers: common });
  return new Response(document.compressed(encoding), { headers: { ...common, "Content-Encoding": encoding } });
}

/** Returns the address of a document with its version. */
export function versionedAddress(path: string, { version }: Document): string {
  return `${path}?v=${version}`;
}

/** Responds with a document. At the address of the current version, browsers may keep the document for a year. */
export function respondVersioned(request: Request, document: Document, type: string, more = {}): Response {
  const isCurrent = new URLSearchParams(queryOf(request.url)).get("v") === document.version;
  const keep = isCurrent ? "public, max-age=31536000, immutable" : "no-cache";
  return respondDocument(request, document, { ...more, "Content-Type": type, "Cache-Control": keep });
}
