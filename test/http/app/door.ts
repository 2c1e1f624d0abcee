import { expect } from "bun:test";
import type { Visitor } from "../../../src/http/admin/visitor.ts";
import { createTokenDoor } from "../../../src/http/app/token-door.ts";
import type { RouteContext } from "../../../src/http/routes.ts";
import { createLog } from "../../../src/lib/log.ts";
import { type Installing, installing, NEW_SHOP } from "../../support/installing.ts";

export const ORIGIN = "https://sds.example.com";
export const HOST = Buffer.from("admin.shopify.com/store/new").toString("base64");
export const CONTEXT: RouteContext = { id: "", client: () => "", isSecure: () => true };
const POLICY = /frame-ancestors ([^;]*)$/;

/** Sends requests to the door of `/app`, and keeps the log of the door. */
export class Door {
  readonly all: Installing;
  readonly logged: string[] = [];

  constructor(all: Installing) {
    this.all = all;
  }

  ask(path: string, init: RequestInit = {}): Promise<Visitor | Response> {
    const { platform } = this.all.test.app;
    const { now } = this.all.test.clock;
    const log = createLog("debug", { write: (text) => this.logged.push(text) }, now);
    const { shops, sessions } = this.all.store;
    const door = createTokenDoor({ ...platform, shops, sessions, clientId: "client", publicUrl: ORIGIN, now, log });
    const request = new Request(`${ORIGIN}${path}`, init);
    return path.startsWith("/app/bounce")
      ? Promise.resolve(door.bounce(request, CONTEXT))
      : door.open(request, CONTEXT);
  }

  /** Requests a document, as a frame in the platform's admin does. */
  document(idToken: string | undefined, more: Record<string, string> = {}, path = "/app") {
    const query = { embedded: "1", shop: NEW_SHOP, host: HOST, ...(idToken !== undefined && { id_token: idToken }) };
    return this.ask(`${path}?${new URLSearchParams({ ...query, hmac: "x", timestamp: "1", ...more })}`);
  }

  fetch(idToken: string | undefined, headers: Record<string, string> = {}, init: RequestInit = {}) {
    const bearer = idToken === undefined ? {} : { Authorization: `Bearer ${idToken}` };
    const browser = { "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty" };
    return this.ask("/app/keys", { ...init, headers: { ...browser, ...bearer, ...headers } });
  }
}

export const opened = async (): Promise<Door> => new Door(await installing());

export function visitOf(answer: Visitor | Response): Visitor {
  if (answer instanceof Response) throw new Error(`answered with ${answer.status}`);
  return answer;
}

export function responseOf(answer: Visitor | Response): Response {
  if (!(answer instanceof Response)) throw new Error("the door opened");
  return answer;
}

export const framers = (response: Response) => POLICY.exec(response.headers.get("content-security-policy") ?? "")?.[1];

/** Checks the headers that every answer has. */
export function expectGuarded(response: Response): void {
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
  // A redirect has no page, so it needs no content security policy.
  if (response.status !== 302)
    expect(response.headers.get("content-security-policy")).toStartWith("default-src 'none'; style-src 'self'; ");
  for (const name of ["set-cookie", "x-frame-options", "access-control-allow-origin"])
    expect(response.headers.has(name)).toBe(false);
}
