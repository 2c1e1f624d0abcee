import { hashToken, LINK_LIFE_MS, newToken } from "../../src/actions/session.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { randomBytes, type TestApp } from "./app.ts";

export interface Visitor {
  cookie: string;
  csrf: string;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  html(path: string, headers?: Record<string, string>): Promise<string>;
  /** Posts a form with the session's CSRF token, unless `fields` has the field `csrf`. */
  post(path: string, fields?: Record<string, string | string[]>, headers?: Record<string, string>): Promise<Response>;
}

/** Makes a sign-in link, as `sds admin link` does. @returns its path */
export async function signInPath({ app, clock }: TestApp, shop: Shop): Promise<string> {
  const token = newToken(randomBytes);
  await app.store.sessions.addLink(shop.id, hashToken(token), clock.now() + LINK_LIFE_MS);
  return `/admin/sign-in?token=${token}`;
}

/** Presses the button that a sign-in link shows. */
export function pressSignIn(test: Pick<TestApp, "request">, path: string, init: RequestInit = {}): Promise<Response> {
  const body = new URLSearchParams(path.split("?")[1]);
  return test.request("/admin/sign-in", { method: "POST", ...init, body });
}

/** The cookie that a response sets, as a browser sends it back. */
export function cookieOf(response: Response): string {
  return response.headers.get("set-cookie")?.split(";")[0] ?? "";
}

/** Somebody who is signed in to a shop's settings page. */
export async function visit(test: TestApp, shop: Shop): Promise<Visitor> {
  const cookie = cookieOf(await pressSignIn(test, await signInPath(test, shop)));
  const get = (path: string, headers: Record<string, string> = {}) =>
    test.request(path, { headers: { Cookie: cookie, ...headers } });
  const html = async (path: string, headers?: Record<string, string>) => (await get(path, headers)).text();
  const csrf = /name="csrf" value="([^"]+)"/.exec(await html("/admin/keys"))?.[1] ?? "";

  function post(
    path: string,
    fields: Record<string, string | string[]> = {},
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const pairs = Object.entries({ csrf, ...fields }).flatMap(([name, value]) =>
      [value].flat().map((each): [string, string] => [name, each]),
    );
    return test.request(path, {
      method: "POST",
      headers: { Cookie: cookie, ...headers },
      body: new URLSearchParams(pairs),
    });
  }

  return { cookie, csrf, get, html, post };
}
