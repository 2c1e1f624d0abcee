import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { type Answer, answerOf, NOT_FOUND, notAllowed, refusal, success, UNAUTHORIZED } from "../support/answer.ts";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { exchange, parse, send } from "../support/raw-http.ts";

/** A request line, and the answer to it. */
type Row = readonly [string, Answer];

const OK = success(200, { status: "ok" });

/** Host headers. Bun makes a right URL from some of them, a wrong URL from others, and no URL from the rest. */
const HOSTS = [
  "",
  "a/b",
  "a\\b",
  "x?y",
  "x#y",
  "a b",
  "user@h",
  "[::1",
  "x:99999",
  "x%2f",
  "http://x",
  "x/healthz?",
  "\xe9",
  "a, b",
];

/** Sends each request line. @returns the lines with their answers */
async function answers(url: string, rows: readonly Row[], host?: string): Promise<Row[]> {
  const given: Row[] = [];
  for (const [line] of rows) given.push([line, await answerOf(await send(url, line, host))]);
  return given;
}

test("a path is used as it was sent, so another spelling of a path is 404", async () => {
  const { url } = await new Program().serve();
  const rows = [
    "/api/v2/../v1/orders",
    "/api/v1/./orders",
    "/api/v1/%2e/orders",
    "/api/%2e%2e/api/v1/orders",
    "/api/%2e%2e/admin",
    "/api\\v1\\orders",
    "/api/v1\\orders",
    "/x/../api/v1/orders",
    "/../api/v1/orders",
    "//api/v1/orders",
    "/api//v1/orders",
    "/api/v1/orders/",
    "/api/v1/orders/.",
    "/api/v1/orders/x/..",
    "/api/v1/orders#x",
    "/api/v1/%6frders",
    "/API/v1/orders",
    "/api/v1/\xe9",
    "http://other.example/api/v2/../v1/orders",
    "/x/../healthz",
    "/healthz/.",
    "/healthz#x",
    "/admin/../healthz",
    "/admin/x/../keys",
    "/admin/deliveries/..",
    "/admin/deliveries/%2e%2e",
    "/admin/deliveries/a\\..\\b",
    "/admin/deliveries/a\\..\\..\\keys",
    "/admin/deliveries/whd%5fa",
    "/admin/keys/../revoke",
    "/*",
    "/api/*",
    "/admin/deliveries/:id",
  ].map((path): Row => [`GET ${path}`, NOT_FOUND]);
  expect(await answers(url, rows)).toEqual(rows);
});

test("below /api every method except GET is 405, on any path", async () => {
  const { url } = await new Program().serve();
  const methods = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "QUERY"];
  const paths = [
    "/api",
    "/api/",
    "/api/v1/orders?limit=1",
    "/api/v2/../v1/orders",
    "/api/%2e%2e/admin",
    "http://other.example/api/v1/orders",
  ];
  const rows = methods.flatMap((method) => paths.map((path): Row => [`${method} ${path}`, notAllowed("GET")]));
  expect(await answers(url, rows)).toEqual(rows);
});

test("elsewhere an unknown path is 404 for every method, and a known path has its own methods", async () => {
  const { url } = await new Program().serve();
  const rows: Row[] = [
    ["POST /nothing", NOT_FOUND],
    ["PROPFIND /nothing", NOT_FOUND],
    ["CONNECT other.example:443", NOT_FOUND],
    ["POST /x/../healthz", NOT_FOUND],
    ["POST /x/../api/v1/orders", NOT_FOUND],
    ["POST /api\\v1\\orders", NOT_FOUND],
    ["PUT /admin/nothing", NOT_FOUND],
    ["POST /admin/keys/%2e%2e/revoke", NOT_FOUND],
    ["PROPFIND /healthz", notAllowed("GET, HEAD")],
    ["PROPFIND /intake", notAllowed("POST")],
    ["POST /admin/plan", notAllowed("GET")],
    ["POST /admin/deliveries/whd_a", notAllowed("GET")],
    ["PUT /admin/keys/key_a/revoke", notAllowed("GET, POST")],
  ];
  expect(await answers(url, rows)).toEqual(rows);
});

test("the Host header changes no answer", async () => {
  const { url } = await new Program().serve();
  const rows: Row[] = [
    ["POST /api/v1/orders", notAllowed("GET")],
    ["GET /api/v1/orders?limit=1", UNAUTHORIZED],
    ["POST /api/../healthz", notAllowed("GET")],
    ["GET /api/../healthz", NOT_FOUND],
    ["GET /admin/deliveries/..", NOT_FOUND],
    ["GET /nothing", NOT_FOUND],
    ["POST /healthz", notAllowed("GET, HEAD")],
    ["GET /healthz", OK],
  ];
  for (const host of HOSTS) expect([host, await answers(url, rows, host)]).toEqual([host, rows]);
});

test("the settings page answers under any Host header", async () => {
  const { url } = await new Program().serve();
  for (const host of HOSTS) {
    const status = async (path: string) => (await send(url, `GET ${path}`, host)).status;
    expect([
      host,
      await status("/admin/keys"),
      await status("/admin/deliveries/whd_a"),
      await status("/assets/page.js?v=1"),
    ]).toEqual([host, 401, 401, 200]);
  }
});

test("the intake takes a body under any Host header", async () => {
  const program = await Program.withShop();
  const { secret } = await program.json<{ secret: string }>(["intake", "secret"]);
  const { url } = await program.serve();
  const signature = createHmac("sha256", secret).update("[]").digest("hex");
  const headers = `Content-Length: 2\r\nX-Service-Shop: alpha.myshopify.com\r\nX-Service-Signature: sha256=${signature}`;
  for (const host of ["x", "", "a/b"]) {
    const text = await exchange(
      url,
      `POST /intake HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${headers}\r\n\r\n[]`,
    );
    expect(await answerOf(parse(text))).toEqual(success(202, { accepted: 0 }));
  }
});

test("the log names the client's address of a refused sign-in link, under any Host header", async () => {
  const server = await new Program().serve();
  const headers = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\nConnection: close";
  for (const host of ["x", "a/b"]) {
    const answer = await exchange(
      server.url,
      `POST /admin/sign-in HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n\r\ntoken=x`,
    );
    expect(parse(answer).status).toBe(401);
  }
  const lines = await eventually(() => {
    const found = server.output.split("\n").filter((line) => line.includes("sign-in link"));
    return found.length === 2 && found;
  });
  expect(lines.map((line) => JSON.parse(line).address)).toEqual(["127.0.0.1", "127.0.0.1"]);
});

test("a body of any announced size is refused in JSON", async () => {
  const { url } = await new Program().serve();
  const text = await exchange(
    url,
    "POST /intake HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 200000000\r\n\r\n{}",
  );
  const message = "The body may have 1048576 bytes at most. Send more in several bodies, or with `sds import`.";
  expect(await answerOf(parse(text))).toEqual(refusal(413, "too_large", message));
});

test("the host of an absolute target is ignored", async () => {
  const { url } = await new Program().serve();
  const rows: Row[] = [
    ["GET http://other.example/healthz", OK],
    ["GET https://user@other.example:1/healthz?x", OK],
    ["GET http://other.example/api/v1/orders", UNAUTHORIZED],
  ];
  expect(await answers(url, rows)).toEqual(rows);
});

test("a health check of HTTP/1.0 needs no Host header", async () => {
  const { url } = await new Program().serve();
  expect(await answerOf(parse(await exchange(url, "GET /healthz HTTP/1.0\r\n\r\n")))).toEqual(OK);
});

test("HEAD is answered without a body: as GET on /healthz and /readyz, 405 below /api", async () => {
  const { url } = await new Program().serve();
  const head = async (path: string) => {
    const response = await send(url, `HEAD ${path}`);
    return {
      status: response.status,
      type: response.headers.get("content-type"),
      allow: response.headers.get("allow"),
      body: await response.text(),
    };
  };
  const type = "application/json";
  expect(await head("/healthz")).toEqual({ status: 200, type, allow: null, body: "" });
  expect(await head("/readyz")).toEqual({ status: 200, type, allow: null, body: "" });
  expect(await head("/api/v1/orders")).toEqual({ status: 405, type, allow: "GET", body: "" });
});
