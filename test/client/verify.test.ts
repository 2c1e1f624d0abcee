import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { verify } from "../../src/client/verify.ts";

const SECRET = `whsec_${Buffer.from("thirty-two bytes of a test secret").toString("base64")}`;
const FORMER = `whsec_${Buffer.from("another secret, from before it all").toString("base64")}`;
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const ID = "whd_aaaaaaaaaaaaaaaaaaaaaaaa";
const EVENT = {
  id: ID,
  topic: "order.failed",
  created_at: "2026-03-01T12:00:00.000Z",
  shop: "alpha.myshopify.com",
  data: { total_cents: 1990, reason: "insufficient_funds" },
};
const BODY = JSON.stringify(EVENT);

/** Computes the signature that standardwebhooks.com defines, independently of the code under test. */
function standard(body: string, secret = SECRET, timestamp = NOW / 1000, id = ID): string {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
}

function headersOf(signature = standard(BODY), timestamp: string | number = NOW / 1000, id = ID) {
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": signature };
}

const now = () => NOW;

describe("Standard Webhooks", () => {
  test("a genuine delivery gives its event, from bytes or text, and from headers of both kinds", async () => {
    const bytes = new TextEncoder().encode(BODY);
    for (const body of [BODY, bytes, bytes.buffer, Buffer.from(BODY)])
      for (const headers of [headersOf(), new Headers(headersOf())])
        expect(await verify(SECRET, body, headers, { now })).toEqual({ event: EVENT as never, isTest: false });
  });

  test("a test event is marked", async () => {
    const headers = { ...headersOf(), "x-service-test": "true" };
    expect(await verify(SECRET, BODY, headers, { now })).toMatchObject({ isTest: true });
  });

  test("one right signature under one of the secrets is enough", async () => {
    const both = `${standard(BODY, FORMER)} ${standard(BODY)}`;
    for (const secret of [SECRET, FORMER, [SECRET, FORMER], ["whsec_none of ours", SECRET]])
      expect(await verify(secret, BODY, headersOf(both), { now })).toHaveProperty("event");
    expect(await verify([SECRET, FORMER], BODY, headersOf(standard(BODY, FORMER)), { now })).toHaveProperty("event");
  });

  test("signatures of another version are skipped", async () => {
    const signature = `v1a,${"A".repeat(86)}== ${standard(BODY)}`;
    expect(await verify(SECRET, BODY, headersOf(signature), { now })).toHaveProperty("event");
  });

  const changed = standard(BODY).replace(/.(.)=$/, (_, last) => `${last === "A" ? "B" : "A"}${last}=`);
  test.each([
    ["another body", `${BODY} `, headersOf()],
    ["another id", BODY, headersOf(standard(BODY), NOW / 1000, "whd_b")],
    ["another time", BODY, headersOf(standard(BODY), NOW / 1000 + 1)],
    ["another secret", BODY, headersOf(standard(BODY, FORMER))],
    ["another signature", BODY, headersOf(changed)],
    ["no version", BODY, headersOf(standard(BODY).slice(3))],
    ["an empty signature", BODY, headersOf("")],
    ["a short signature", BODY, headersOf("v1,AAAA")],
    ["text as a signature", BODY, headersOf(`v1,${"é".repeat(43)}=`)],
    ["hundreds of signatures", BODY, headersOf(`${`v1,${"A".repeat(43)}= `.repeat(500)}${standard(BODY)}`)],
    ["an X-Service-Signature", BODY, { ...headersOf(""), "x-service-signature": service(BODY) }],
  ])("refuses %s", async (_name, body, headers) => {
    expect(await verify(SECRET, body, headers, { now })).toEqual({ refused: "wrong_signature" });
  });

  test.each(["webhook-id", "webhook-timestamp", "webhook-signature"])("refuses a delivery without %s", async (name) => {
    const { [name as "webhook-id"]: _, ...headers } = headersOf();
    expect(await verify(SECRET, BODY, headers, { now })).toEqual({ refused: "no_signature" });
    expect(await verify(SECRET, BODY, { ...headers, [name]: ["a", "b"] }, { now })).toEqual({
      refused: "no_signature",
    });
  });

  test.each([
    [-301, "too_new"],
    [-300, undefined],
    [300, undefined],
    [301, "too_old"],
  ])("a signature %d seconds old: %p", async (seconds, refused) => {
    const timestamp = NOW / 1000 - seconds;
    const headers = headersOf(standard(BODY, SECRET, timestamp), timestamp);
    const result = await verify(SECRET, BODY, headers, { now });
    expect(result.refused).toBe(refused as never);
  });

  test("the tolerance can be set, and the clock is this machine's by default", async () => {
    const headers = headersOf();
    expect(await verify(SECRET, BODY, headers)).toEqual({ refused: NOW < Date.now() ? "too_old" : "too_new" });
    expect(await verify(SECRET, BODY, headers, { toleranceMs: Number.POSITIVE_INFINITY })).toHaveProperty("event");
  });

  test("a signed body is refused if it is not an event", async () => {
    for (const body of ["", "[]", "null", "{}", '{"topic":"order.failed"}'])
      expect(await verify(SECRET, body, headersOf(standard(body)), { now })).toEqual({ refused: "not_an_event" });
  });

  test("a malformed secret refuses every delivery, and throws no error", async () => {
    for (const secret of ["", "whsec_", "whsec_*", "whsec_A", "secret", []])
      expect(await verify(secret, BODY, headersOf(), { now })).toEqual({ refused: "wrong_signature" });
  });
});

function service(body: string, secret = SECRET): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

describe("X-Service-Signature", () => {
  const options = { signature: "service", now } as const;
  const check = (secret: string | string[], header: string | undefined, body = BODY) =>
    verify(secret, body, { "x-service-signature": header }, options);

  test("a genuine delivery gives its event, also under an older secret", async () => {
    expect(await check(SECRET, service(BODY))).toEqual({ event: EVENT as never, isTest: false });
    expect(await check([SECRET, FORMER], service(BODY, FORMER))).toHaveProperty("event");
  });

  test("everything else is refused", async () => {
    expect(await check(SECRET, undefined)).toEqual({ refused: "no_signature" });
    const digits = service(BODY).slice("sha256=".length);
    for (const header of [
      "",
      digits,
      `sha256=${digits.toUpperCase()}`,
      service(BODY, FORMER),
      `sha256=${"é".repeat(64)}`,
    ])
      expect(await check(SECRET, header)).toEqual({ refused: "wrong_signature" });
    expect(await check(SECRET, service(BODY), `${BODY} `)).toEqual({ refused: "wrong_signature" });
    expect(await verify(SECRET, BODY, headersOf(), options)).toEqual({ refused: "no_signature" });
  });
});
