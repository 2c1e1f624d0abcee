import { createHmac, timingSafeEqual } from "node:crypto";
import { SdsError } from "../domain/error.ts";
import type { IncomingRecord } from "../domain/record-schemas.ts";
import { parseRecord, parseRecordText } from "../domain/records.ts";
import type { Refusal } from "../domain/refusal.ts";
import type { Shop } from "../domain/shop.ts";
import { decodeUtf8 } from "../lib/text.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { ShopStore } from "../store/shops.ts";
import { announcedBytes, type BodyReader, MAX_INBOUND_BYTES } from "./body.ts";
import { respond } from "./respond.ts";
import type { RouteHandler } from "./route.ts";

const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/** POST /intake: records from the billing system, answered after they are committed (docs/records.md, The intake). */
export function createIntakeHandler(bodies: BodyReader, shops: ShopStore, recordWriter: RecordWriter): RouteHandler {
  return async (request, { peer }) => {
    announcedBytes(request, MAX_INBOUND_BYTES);
    // Whether the shop exists is not asked before the body was read, so that the time of the answer does not tell it.
    if (!mayBeSigned(request.headers)) throw unauthorized();
    using body = await bodies.read(request, { maxBytes: MAX_INBOUND_BYTES, sender: peer() ?? "" });
    const shop = await authenticate(shops, request.headers, body.bytes);
    const records = readRecords(body.bytes);
    const applied = await recordWriter.submit({ shop, records });
    if ("refused" in applied) throw badRecord(applied.refused.index, applied.refused);
    return respond(202, JSON.stringify({ accepted: applied.accepted }), { "Cache-Control": "no-store" });
  };
}

/** @returns the shop that signed the body. @throws SdsError `unauthorized` */
async function authenticate(shops: ShopStore, headers: Headers, body: Uint8Array): Promise<Shop> {
  const found = await shops.intakeSecret(headers.get("x-service-shop") ?? "");
  // The signature is checked for an unknown shop too, so that the time of the answer does not tell which shops exist.
  const genuine = isSigned(found?.secret ?? "", body, headers.get("x-service-signature"));
  if (found !== undefined && genuine) return found.shop;
  throw unauthorized();
}

/** Whether the headers have the right form. A request without them is refused before its body is read. */
function mayBeSigned(headers: Headers): boolean {
  return (headers.get("x-service-shop") ?? "") !== "" && SIGNATURE.test(headers.get("x-service-signature") ?? "");
}

function unauthorized(): SdsError {
  return new SdsError(
    "unauthorized",
    "Send X-Service-Shop, and X-Service-Signature: sha256= and the hex HMAC-SHA256 of the raw body " +
      "with that shop's intake secret.",
  );
}

/**
 * Whether the header is `sha256=` and the HMAC of the body, compared in constant time. For a small body Web Crypto
 * takes four times as long as node:crypto, because it works on another thread.
 */
function isSigned(secret: string, body: Uint8Array, header: string | null): boolean {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  const given = Buffer.from(header ?? "");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function badRecord(index: number, { field, reason }: Refusal): SdsError {
  const where = field === "" ? `Record ${index}` : `Record ${index}, field ${field}:`;
  return new SdsError("bad_record", `${where} ${reason}. Nothing of this body was kept.`);
}

/**
 * Reads one record, an array of records, or NDJSON.
 * @throws SdsError `bad_record` that names the record by its index from 0
 */
function readRecords(body: Uint8Array): IncomingRecord[] {
  const text = decodeUtf8(body);
  if (text === undefined) throw new SdsError("bad_record", "The body is not UTF-8.");
  const whole = parseJson(text);
  const results =
    whole === undefined
      ? text
          .split("\n")
          .filter((line) => line.trim() !== "")
          .map(parseRecordText)
      : [whole].flat().map(parseRecord);
  if (whole === undefined && results.length === 0) throw new SdsError("bad_record", "The body is empty.");
  return results.map((result, index) => {
    if ("refused" in result) throw badRecord(index, result.refused);
    return result.record;
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
