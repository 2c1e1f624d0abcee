import { createHmac, timingSafeEqual } from "node:crypto";
import { importSecret, verifyBody } from "../client/signature.ts";
import { SdsError } from "../domain/error.ts";
import type { IncomingRecord } from "../domain/records/record-schemas.ts";
import { parseRecordText } from "../domain/records/records.ts";
import type { Shop } from "../domain/shop.ts";
import { splitJson } from "../lib/json.ts";
import type { LoadGauge } from "../lib/reader-queue.ts";
import type { BodyWriter } from "../mirror/body-writer.ts";
import { MAX_DIRECT_RECORDS } from "../mirror/record-check.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { IntakeSecret, ShopStore } from "../store/port/shops.ts";
import type { IntakeResult } from "./answers.ts";
import { badRecord, requireText, textOf } from "./bad-record.ts";
import { announcedBytes, type Body, type BodyReader, MAX_INBOUND_BYTES } from "./body.ts";
import { BODIES_WAIT, type LargeBodies } from "./large-body.ts";
import { refusals } from "./refusals.ts";
import { respond } from "./respond.ts";
import type { RouteContext, RouteHandler } from "./route.ts";

const SIGNATURE = /^sha256=[0-9a-f]{64}$/;
/** A body of so many bytes is read at once, which takes some milliseconds at most. */
const SMALL_BYTES = 64 * 1024;
const BEHIND = "A body that was interrupted by a restart is still being applied. It is safe to try again.";

interface Dependencies {
  recordWriter: Pick<RecordWriter, "submit">;
  largeBodies: Pick<LargeBodies, "apply">;
  bodies: BodyReader;
  shops: ShopStore;
  bodyWriter: Pick<BodyWriter, "isBehind" | "waitForBodies">;
  /** Counts posts that are signed and wait for no other post: readers make room for them. */
  load: Pick<LoadGauge, "during">;
}

/** POST /intake: records from the billing system, answered after they are committed (docs/records.md, The intake). */
export function createIntakeHandler(dependencies: Dependencies): RouteHandler {
  const { bodies, shops, recordWriter, bodyWriter, largeBodies, load } = dependencies;
  return async (request, { client, keepOpen }) => {
    announcedBytes(request, MAX_INBOUND_BYTES);
    // Whether the shop exists is not asked before the body was read, so that the time of the answer does not tell it.
    if (!mayBeSigned(request.headers)) throw refusals.wrongSignature();
    using body = await bodies.read(request, { maxBytes: MAX_INBOUND_BYTES, sender: client() });
    const { shop } = await authenticate(shops, request.headers, body.bytes);
    return await take(shop, body, keepOpen);
  };

  async function take(shop: Shop, body: Body, keepOpen: RouteContext["keepOpen"]): Promise<Response> {
    // A record that is newer than the rest of an earlier body would be overwritten by it.
    if (bodyWriter.isBehind(shop)) throw new SdsError("unavailable", BEHIND);
    const records = body.bytes.length <= SMALL_BYTES ? readRecords(textOf(body.bytes)) : undefined;
    if (records === undefined) {
      using _open = keepOpen();
      return accepted(await load.during(largeBodies.apply(shop, body)));
    }
    if (!(await bodyWriter.waitForBodies(shop))) throw new SdsError("unavailable", BODIES_WAIT);
    const applied = await load.during(recordWriter.submit({ shop, records }));
    if ("refused" in applied) throw badRecord(applied.refused);
    return accepted(applied.accepted);
  }
}

function accepted(count: number): Response {
  return respond(202, JSON.stringify({ accepted: count } satisfies IntakeResult), { "Cache-Control": "no-store" });
}

/** Whether the headers have the right form. A request without them is refused before its body is read. */
function mayBeSigned(headers: Headers): boolean {
  return (headers.get("x-service-shop") ?? "") !== "" && SIGNATURE.test(headers.get("x-service-signature") ?? "");
}

/** @returns the shop that signed the body. @throws SdsError `unauthorized` */
async function authenticate(shops: ShopStore, headers: Headers, body: Uint8Array<ArrayBuffer>): Promise<IntakeSecret> {
  const found = await shops.intakeSecret(headers.get("x-service-shop") ?? "");
  // The signature is checked for an unknown shop too, so that the time of the answer does not tell which shops exist.
  const isSigned = body.length <= SMALL_BYTES ? isSignedNow : isSignedBeside;
  const genuine = await isSigned(found?.secret ?? "?", body, headers.get("x-service-signature") ?? "");
  if (found !== undefined && genuine) return found;
  throw refusals.wrongSignature();
}

/** For a small body Web Crypto takes four times as long as this, because it works on another thread. */
function isSignedNow(secret: string, body: Uint8Array, header: string): boolean {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  const given = Buffer.from(header);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

async function isSignedBeside(secret: string, body: Uint8Array<ArrayBuffer>, header: string): Promise<boolean> {
  return verifyBody(await importSecret(secret), body, header);
}

/**
 * Reads one record, an array of records, or NDJSON.
 * @returns undefined for more records than fit into one commit
 * @throws SdsError `bad_record` for the first bad record
 */
function readRecords(text: string): IncomingRecord[] | undefined {
  const records: IncomingRecord[] = [];
  for (const recordText of splitJson(text)) {
    if (recordText === undefined) continue;
    if (records.length === MAX_DIRECT_RECORDS) return undefined;
    const parsed = parseRecordText(recordText);
    if ("refused" in parsed) throw badRecord({ index: records.length, ...parsed.refused });
    records.push(parsed.record);
  }
  if (records.length === 0) requireText(text);
  return records;
}
