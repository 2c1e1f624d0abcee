import { describe, expect, test } from "bun:test";
import type { Visitor } from "../../../src/http/admin/visitor.ts";
import { NEW_SHOP } from "../../support/installing.ts";
import { type Door, expectGuarded, HOST, ORIGIN, opened, responseOf, visitOf } from "./door.ts";

describe("a fetch", () => {
  test("with a bearer opens its shop, for any method", async () => {
    const door = await opened();
    const visit = visitOf(await door.fetch(door.all.idToken()));
    const post = visitOf(await door.fetch(door.all.idToken(), {}, { method: "POST", body: "x=y" }));
    expect(post).toEqual(visit);
    expect(visitOf(await door.document(door.all.idToken()))).toEqual(visit);
  });

  test("has a key that stays for a staff member's session, and differs for another", async () => {
    const door = await opened();
    const keyOf = async (claims = {}) =>
      Buffer.from(visitOf(await door.fetch(door.all.idToken(claims))).key).toString("hex");
    const key = await keyOf();
    door.all.test.clock.ms += 60_000;
    expect(await keyOf()).toBe(key);
    const others = [await keyOf({ sub: "43" }), await keyOf({ sid: "b" }), await keyOf({ sub: "4", sid: "2a" })];
    expect(new Set([key, ...others]).size).toBe(4);
  });

  test.each<[string, (door: Door) => Promise<Visitor | Response>]>([
    ["without a bearer", (door) => door.fetch(undefined)],
    ["with a forged one", (door) => door.fetch(door.all.idToken({}, "wrong"))],
    ["with an old one", (door) => door.fetch(door.all.idToken({ exp: 1 }))],
    ["with a cookie alone", (door) => door.fetch(undefined, { Cookie: `id_token=${door.all.idToken()}` })],
    ["with another scheme", (door) => door.fetch(undefined, { Authorization: `Basic ${door.all.idToken()}` })],
    [
      "with the token in its address",
      (door) =>
        door.ask(
          `/app/keys?${new URLSearchParams({ shop: NEW_SHOP, host: HOST, embedded: "1", id_token: door.all.idToken() })}`,
          { headers: { "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin" } },
        ),
    ],
    ["that posts without a bearer", (door) => door.ask("/app/keys", { method: "POST", body: "x=y" })],
    [
      "that posts with the token in its address",
      (door) =>
        door.ask(
          `/app/keys?${new URLSearchParams({ shop: NEW_SHOP, host: HOST, embedded: "1", id_token: door.all.idToken() })}`,
          { method: "POST", body: "x=y" },
        ),
    ],
  ])("%s is asked for a new ID token, and is never redirected", async (_title, ask) => {
    const door = await opened();
    for (const isConnected of [false, true]) {
      if (isConnected) visitOf(await door.document(door.all.idToken()));
      const response = responseOf(await ask(door));
      expect(response.status).toBe(401);
      expect(response.headers.get("x-shopify-retry-invalid-session-request")).toBe("1");
      expectGuarded(response);
      expect(door.all.platform.exchanges).toBe(isConnected ? 1 : 0);
    }
  });

  test.each([
    ["cross-site", { "Sec-Fetch-Site": "cross-site" }],
    ["same-site", { "Sec-Fetch-Site": "same-site" }],
    ["none", { "Sec-Fetch-Site": "none" }],
  ])("of another site is refused: %s", async (_title, headers) => {
    const door = await opened();
    const response = responseOf(await door.fetch(door.all.idToken(), headers));
    expect(response.status).toBe(403);
    expect(response.headers.has("x-shopify-retry-invalid-session-request")).toBe(false);
    expectGuarded(response);
  });

  test("without Sec-Fetch-Site is refused with the Origin of another site", async () => {
    const door = await opened();
    const ask = (Origin: string) =>
      door.ask("/app/keys", { headers: { Authorization: `Bearer ${door.all.idToken()}`, Origin } });
    expect(responseOf(await ask("https://evil.example")).status).toBe(403);
    visitOf(await ask(ORIGIN));
  });
});
