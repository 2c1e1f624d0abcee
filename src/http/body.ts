import { SdsError } from "../domain/error.ts";

/**
 * The raw bytes of a request's body: signatures are over bytes, so they are taken before anything reads them as text.
 * @param limit bytes
 * @throws SdsError `too_large`, without waiting for the rest
 */
export async function readBody(request: Request, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = () => new SdsError("too_large", `The body may have ${limit} bytes at most.`);
  const announced = request.headers.get("content-length");
  if (announced !== null) {
    if (Number(announced) > limit) throw tooLarge();
    return new Uint8Array(await request.arrayBuffer());
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > limit) throw tooLarge();
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
