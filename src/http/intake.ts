import { createHmac, timingSafeEqual } from "node:crypto";
import { SdsError } from "../domain/error.ts";
import { type IncomingRecord, parseRecord, parseRecordText, type Refusal } from "../domain/records.ts";
import { decodeUtf8 } from "../lib/text.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { ShopStore } from "../store/shops.ts";
import { readBody } from "./body.ts";
import { respond } from "./respond.ts";

const MAX_BODY = 5 * 1024 * 1024;

export type IntakeHandler = (request: Request) => Promise<Response>;

/** POST /intake: records from the billing system, answered once they are committed (contract.md 4). */
export function intakeHandler(shops: ShopStore, recordWriter: RecordWriter): IntakeHandler {
  const authenticate = authenticator(shops);
  return async (request) => {
    const body = await readBody(request, MAX_BODY);
    const shop = await authenticate(request.headers, body);
    const records = readRecords(body);
    const applied = await recordWriter.submit({ shop, records });
    if ("refused" in applied) throw badRecord(applied.refused.index, applied.refused);
    return respond(202, JSON.stringify({ accepted: applied.accepted }), { "Cache-Control": "no-store" });
  };
}

function authenticator(shops: ShopStore) {
  const nobody = crypto.randomUUID();
  return async (headers: Headers, body: Uint8Array) => {
    const found = await shops.intakeSecret(headers.get("x-service-shop") ?? "");
    // An unknown shop takes as long to refuse as a wrong signature.
    const genuine = isSigned(found?.secret ?? nobody, body, headers.get("x-service-signature"));
    if (found !== undefined && genuine) return found.shop;
    throw new SdsError(
      "unauthorized",
      "Send X-Service-Shop, and X-Service-Signature: sha256= and the hex HMAC-SHA256 of the raw body with that shop's intake secret.",
    );
  };
}

/** Whether the header is what `signBody` gives, in constant time. Not by Web Crypto, whose threads take four times as long for a small body. */
function isSigned(secret: string, body: Uint8Array, header: string | null): boolean {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  const given = Buffer.from(header ?? "");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function badRecord(index: number, { field, reason }: Refusal): SdsError {
  const where = field === "" ? `Record ${index}` : `Record ${index}, field ${field}:`;
  return new SdsError("bad_record", `${where} ${reason}. Nothing of this body was kept.`);
}

/** One record, an array of them, or NDJSON. @throws SdsError `bad_record` naming the record by its index from 0 */
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
