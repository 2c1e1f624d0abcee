import { SdsError } from "../domain/error.ts";

/** The largest body of the intake or of a platform webhook. */
export const MAX_INBOUND_BYTES = 5 * 1024 * 1024;

/**
 * Reads a body as raw bytes, because signatures are over bytes and not over text.
 * @throws SdsError `too_large`, without waiting for the rest
 */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = () => new SdsError("too_large", `The body may have ${maxBytes} bytes at most.`);
  const announced = request.headers.get("content-length");
  if (announced !== null) {
    if (Number(announced) > maxBytes) throw tooLarge();
    return new Uint8Array(await request.arrayBuffer());
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
