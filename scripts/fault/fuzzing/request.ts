import type { FuzzedShop } from "./world.ts";

export interface FuzzedRequest {
  /** A `raw` request has its own connection, because the server may close the connection instead of answering. */
  kind: "read" | "path" | "intake" | "platform" | "admin" | "raw";
  method: string;
  /** The path, with its query. */
  target: string;
  headers: [name: string, value: string][];
  body?: Buffer;
  /** Send the body in chunks of this many bytes. */
  chunkBytes?: number;
  /** The shop whose key or session the request has. Rows of another shop in the answer are a violation. */
  as?: FuzzedShop;
  /** The bytes of a `raw` request. */
  raw?: string;
}

/** The bytes that are sent over the socket. */
export function bytesOf({ method, target, headers, body, chunkBytes, raw }: FuzzedRequest): Buffer {
  if (raw !== undefined) return Buffer.from(raw, "latin1");
  const lines = [`${method} ${target} HTTP/1.1`, "Host: fuzz", ...headers.map(([name, value]) => `${name}: ${value}`)];
  if (body === undefined) return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
  if (chunkBytes === undefined)
    return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\nContent-Length: ${body.length}\r\n\r\n`), body]);
  const parts: Uint8Array[] = [Buffer.from(`${lines.join("\r\n")}\r\nTransfer-Encoding: chunked\r\n\r\n`)];
  for (let at = 0; at < body.length; at += chunkBytes) {
    const chunk = body.subarray(at, at + chunkBytes);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}

/** Makes a text valid in a header: replaces line breaks, and characters outside Latin-1. */
export function headerText(text: string): string {
  return text.replace(/[^\x20-\x7e\x80-\xff]/g, "?").trim();
}
