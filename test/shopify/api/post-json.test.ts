import { expect, test } from "bun:test";
import { postJson } from "../../../src/shopify/api/post-json.ts";
import { afterTest } from "../../support/cleanup.ts";

const MIB = 1024 * 1024;

function listen(answer: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer });
  afterTest(() => server.stop(true));
  return server.url.href;
}

function post(url: string, signal?: AbortSignal) {
  return postJson(fetch, { url, body: "{}", headers: { "X-Test": "yes" }, ...(signal && { signal }) });
}

test("sends the headers, and reads status and body", async () => {
  const url = listen(async ({ headers, method }) => {
    const fields = ["x-test", "accept", "user-agent"].map((name) => headers.get(name));
    return Response.json({ method, fields }, { status: 418, headers: { "Retry-After": "1" } });
  });
  const body = { method: "POST", fields: ["yes", "application/json", "sds"] };
  expect(await post(url)).toEqual({ status: 418, retryAfterMs: 1000, apiVersion: null, body });
});

test("does not follow a redirect, which would take the token along", async () => {
  let redirected = 0;
  const target = listen(() => {
    redirected += 1;
    return Response.json({});
  });
  const url = listen(() => Response.redirect(target, 307));
  expect(await post(url)).toMatchObject({ status: 307, body: undefined });
  expect(redirected).toBe(0);
});

test("reads answers of up to 32 MiB", async () => {
  const url = (size: number) => listen(() => new Response(`{"a":"${"x".repeat(size - 8)}"}`));
  const longest = await post(url(32 * MIB));
  expect(String(longest.body?.["a"]).length).toBe(32 * MIB - 8);
  const tooLong = post(url(32 * MIB + 1));
  await expect(tooLong).rejects.toMatchObject({ reason: "unavailable", message: "the platform's answer is too long" });
});

test("says why there is no answer", async () => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { href } = server.url;
  await server.stop(true);
  const message = "the platform cannot be reached: the connection was refused";
  await expect(post(href)).rejects.toMatchObject({ reason: "unavailable", status: null, message });
  const hanging = listen(() => new Promise(() => {}));
  const stopped = post(hanging, AbortSignal.timeout(20));
  await expect(stopped).rejects.toMatchObject({ message: "the platform did not answer in time" });
});
