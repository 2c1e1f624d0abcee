import { expect, test } from "bun:test";
import { StoreError } from "../../src/store/store-error.ts";
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
    expect(await answer.text()).toContain("<h1>Please try again</h1>");
    const requestId = answer.headers.get("x-request-id") ?? "none";
    expect(all.logged.filter((line) => line.includes(requestId))).toEqual([
      expect.stringContaining("database is locked"),
    ]);
  },
);
