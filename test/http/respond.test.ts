import { expect, test } from "bun:test";
import { SdsError } from "../../src/domain/error.ts";
import { StoreError, type StoreErrorReason } from "../../src/store/port/store-error.ts";
import { answerOf, INTERNAL, refusal } from "../support/answer.ts";
import { testApp, testShop } from "../support/app.ts";

/** An app that fails to read pages, and a request for a page. */
async function failing(thrown: unknown) {
  const { app, logged, get } = await testShop();
  app.store.pages.list = () => Promise.reject(thrown);
  return { get: () => get("/api/v1/orders"), logged };
}

test("an unexpected failure is 500 without detail, and the detail is in the log under the request id", async () => {
  const { get, logged } = await failing(new Error("disk I/O error at bob@example.com"));
  const response = await get();
  const requestId = response.headers.get("x-request-id") ?? "";
  expect(await answerOf(response)).toEqual(INTERNAL);
  const line = JSON.parse(logged.find((text) => text.includes(requestId)) ?? "{}");
  expect(line).toMatchObject({
    level: "error",
    message: "a request failed",
    error: "disk I/O error at [redacted]",
    stack: expect.stringContaining("at "),
  });
});

test.each(["failed", "internal"] as const)(
  "the message of an error %p is for the log and not for the answer",
  async (code) => {
    const { get, logged } = await failing(new SdsError(code, "cannot read the file of the master key"));
    expect(await answerOf(await get())).toEqual(INTERNAL);
    expect(logged.join("")).toContain("cannot read the file of the master key");
  },
);

test.each<[StoreErrorReason, string]>([
  ["busy", "warn"],
  // The log has one error for the whole outage, not one for each request.
  ["lost", "debug"],
])("a database that is %s is 503, and the request is in the log as %s", async (reason, level) => {
  const { get, logged } = await failing(new StoreError(reason, new Error("database is locked")));
  const response = await get();
  const requestId = response.headers.get("x-request-id");
  const message = "The database is busy or cannot be used. It is safe to try again.";
  expect(await answerOf(response)).toEqual(refusal(503, "unavailable", message, { "retry-after": "1" }));
  const lines = logged.map((text) => JSON.parse(text)).filter((line) => line.requestId !== undefined);
  expect(lines).toMatchObject([
    {
      level,
      message: "the database could not serve a request",
      requestId,
      reason,
      error: "database is locked",
    },
  ]);
});

test("a write that breaks a constraint is a defect, and 500", async () => {
  const { get, logged } = await failing(new StoreError("conflict", new Error("FOREIGN KEY constraint failed")));
  expect(await answerOf(await get())).toEqual(INTERNAL);
  expect(logged.join("")).toContain('"level":"error"');
});

test("a client that leaves in the middle of its body is not logged as an internal error", async () => {
  const { request, logged } = await testApp();
  const body = new ReadableStream({
    pull() {
      throw new DOMException("The connection was closed.", "AbortError");
    },
  });
  const headers = { "X-Service-Shop": "x", "X-Service-Signature": `sha256=${"0".repeat(64)}` };
  expect((await request("/intake", { method: "POST", body, headers })).status).toBe(500);
  expect(logged.join("")).not.toContain('"level":"error"');
  expect(logged.join("")).toContain("a client went away");
});
