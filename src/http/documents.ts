import { CryptoHasher } from "bun";
import { acceptedEncoding, type Encoding } from "./encoding.ts";
import { hasTag } from "./entity-tags.ts";
import { newRequestId } from "./respond.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** A text that the program serves as it is. */
export interface Document {
  /** A name of its content, of 16 characters. */
  version: string;
  plain: Bytes;
  compressed: (encoding: Encoding) => Bytes;
}

export function createDocument(text: string): Document {
  const plain = Uint8Array.from(Buffer.from(text));
  let zstd: Bytes | undefined;
  let gzip: Bytes | undefined;
  return {
    version: new CryptoHasher("sha256").update(plain).digest("hex").slice(0, 16),
    plain,
    compressed(encoding) {
      if (encoding === "gzip") {
        gzip ??= Bun.gzipSync(plain);
        return gzip;
      }
      zstd ??= Uint8Array.from(Bun.zstdCompressSync(plain));
      return zstd;
    },
  };
}

/**
 * The document, compressed if the browser accepts that, or 304 without it if the browser has it already.
 * @param headers beside ETag, Vary, Content-Encoding, X-Request-Id and X-Content-Type-Options
 */
export function respondDocument(request: Request, document: Document, headers: Record<string, string>): Response {
  // Weak, because the document can be compressed in several ways (RFC 9110, section 8.8.3).
  const tag = `W/"${document.version}"`;
  const common = {
    ...headers,
    ETag: tag,
    Vary: "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
    "X-Request-Id": newRequestId(),
  };
  if (hasTag(request, tag)) return new Response(null, { status: 304, headers: common });
  const encoding = acceptedEncoding(request.headers.get("accept-encoding"));
  if (encoding === undefined) return new Response(document.plain, { headers: common });
  return new Response(document.compressed(encoding), { headers: { ...common, "Content-Encoding": encoding } });
}
