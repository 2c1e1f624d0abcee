import { expect, jest, test } from "bun:test";
import { StoreError } from "../../src/store/port/store-error.ts";
import { signedIn } from "../support/signed-in.ts";

const BUSY = () => Promise.reject(new StoreError("busy", new Error("database is locked")));

test.each(["a page", "a form", "a session"])(
  "%s of the settings page that meets a locked database is a page with 503",
  async (met) => {
    const { all, get, post, store } = await signedIn();
    if (met === "a session") store.sessions.find = BUSY;
    store.keys.list = BUSY;
    store.keys.add = BUSY;
    const answer = met === "a form" ? await post("/admin/keys", { label: "Warehouse" }) : await get("/admin/keys");
    expect([answer.status, answer.headers.get("content-type"), answer.headers.get("retry-after")]).toEqual([
      503,
      "text/html; charset=utf-8",
      "1",
    ]);
    expect(await answer.text()).toContain("Please try again</h1>");
    const requestId = answer.headers.get("x-request-id") ?? "none";
    expect(all.logged.filter((line) => line.includes(requestId))).toEqual([
      expect.stringContaining("database is locked"),
    ]);
  },
);

test("a form that takes too long to arrive is answered with a page with 503", async () => {
  const { all, cookie } = await signedIn();
  const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("label=")) });
  const headers = { Cookie: cookie, "Content-Type": "application/x-www-form-urlencoded" };
  jest.useFakeTimers();
  try {
    const answered = all.request("/admin/keys", { method: "POST", headers, body });
    let answer: Response | undefined;
    void answered.then((response) => {
      answer = response;
    });
    for (let turns = 0; answer === undefined && turns < 1_000; turns += 1) {
      await Promise.resolve();
      jest.advanceTimersByTime(100);
    }
    const headersOf = ["content-type", "retry-after", "connection"].map((name) => answer?.headers.get(name));
    expect([answer?.status, ...headersOf]).toEqual([503, "text/html; charset=utf-8", "1", "close"]);
    expect(await answer?.text()).toContain("The body took too long to arrive.");
  } finally {
    jest.useRealTimers();
  }
});
