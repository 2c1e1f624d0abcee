import { createHmac, timingSafeEqual } from "node:crypto";
import { SdsError } from "../domain/error.ts";
import type { IncomingRecord } from "../domain/records/record-schemas.ts";
import { parseRecordText } from "../domain/records/records.ts";
import type { Shop } from "../domain/shop.ts";
import { splitJson } from "../lib/json.ts";
import type { LoadGauge } from "../lib/reader-queue.ts";
import { decodeUtf8 } from "../lib/text.ts";
import { nextTurn } from "../lib/waits.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { ShopMoves } from "../store/port/shop-moves.ts";
import type { IntakeSecret, ShopStore } from "../store/port/shops.ts";
import type { IntakeResult } from "./answers.ts";
import { announcedBytes, type BodyReader } from "./body.ts";
import { FORWARDED, type ForwardPost } from "./intake-forward.ts";
import { INTAKE_LIMIT, MAX_INTAKE_RECORDS, refusals } from "./refusals.ts";
import { respond } from "./respond.ts";
import type { RouteHandler } from "./routes.ts";

/** Number of characters that one turn of the event loop checks. Checking the largest body takes up to 20 ms. */
const SLICE_CHARACTERS = 128 * 1024;
const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

interface Dependencies {
  recordWriter: Pick<RecordWriter, "submit">;
  bodies: BodyReader;
  shops: ShopStore;
  moves: Pick<ShopMoves, "isAway">;
  /** Counts the signed posts that are under way. During signed posts, the reader queue delays readers. */
  load: Pick<LoadGauge, "during">;
  forward: ForwardPost;
}

/** POST /intake: receives records, and answers after their commit (docs/records.md, The intake). */
export function createIntakeHandler(dependencies: Dependencies): RouteHandler {
  const { bodies, moves, recordWriter, load, forward } = dependencies;
  async function commit(shop: Shop, text: string): Promise<IntakeResult> {
    const records = await readRecords(text);
    const applied = await load.during(recordWriter.submit({ shop, records }));
    if ("refused" in applied)
      throw (await moves.isAway(shop.domain)) ? refusals.shopMoves() : refusals.badRecord(applied.refused);
    return { accepted: applied.accepted };
  }

  return async (request, context) => {
    announcedBytes(request, INTAKE_LIMIT);
    // The shop is looked up only after the body was read: the time of a refusal must not tell whether a shop exists.
    if (!mayBeSigned(request.headers)) throw refusals.wrongSignature();
    using body = await bodies.read(request, { ...INTAKE_LIMIT, sender: context.client() });
    const signer = await authenticate(dependencies, request.headers, body.bytes);
    context.shop = signer.shop.domain;
    const text = decodeUtf8(body.bytes);
    if (text === undefined) throw new SdsError("bad_record", "The body is not UTF-8.");
    const accepted = request.headers.has(FORWARDED) ? undefined : await forward({ signer, text });
    const result = accepted === undefined ? await commit(signer.shop, text) : { accepted };
    return respond(202, JSON.stringify(result), { "Cache-Control": "no-store" });
  };
}

/** Whether the headers have the right form. If not, the request is refused before its body is read. */
function mayBeSigned(headers: Headers): boolean {
  return (headers.get("x-service-shop") ?? "") !== "" && SIGNATURE.test(headers.get("x-service-signature") ?? "");
}

/**
 * @returns the shop that signed the body
 * @throws SdsError `unauthorized`; `unavailable` if the secret is gone because the shop moves or has moved
 */
async function authenticate(
  { shops, moves }: Pick<Dependencies, "shops" | "moves">,
  headers: Headers,
  body: Uint8Array,
): Promise<IntakeSecret> {
  const domain = headers.get("x-service-shop") ?? "";
  const found = await shops.intakeSecret(domain);
  // The signature is checked for an unknown shop too: the time of the answer must not tell which shops exist.
  const genuine = isSigned(found?.secret ?? "?", body, headers.get("x-service-signature") ?? "");
  if (found !== undefined && genuine) return found;
  if (found === undefined && (await moves.isAway(domain))) throw refusals.shopMoves();
  throw refusals.wrongSignature();
}

/**
 * Whether the body has the right signature. This takes 3 ms for the largest body. Web Crypto would take four times as
 * long for a small body, because it works on another thread.
 */
function isSigned(secret: string, body: Uint8Array, header: string): boolean {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  const given = Buffer.from(header);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/**
 * Reads one record, an array of records, or NDJSON. Pauses between the slices of a large body, so that other requests
 * can run.
 * @throws SdsError `bad_record` for the first bad record, `too_large` for too many records
 */
async function readRecords(text: string): Promise<IncomingRecord[]> {
  const records: IncomingRecord[] = [];
  let sliceCharacters = 0;
  for (const recordText of splitJson(text)) {
    if (records.length === MAX_INTAKE_RECORDS) throw refusals.tooManyRecords();
    const parsed = parseRecordText(recordText);
    if ("refused" in parsed) throw refusals.badRecord({ index: records.length, ...parsed.refused });
    records.push(parsed.record);
    sliceCharacters += recordText.length;
    if (sliceCharacters < SLICE_CHARACTERS) continue;
    await nextTurn();
    sliceCharacters = 0;
  }
  // An empty array is accepted.
  if (records.length === 0 && text.trim() === "") throw new SdsError("bad_record", "The body is empty.");
  return records;
}
