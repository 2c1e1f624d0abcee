import { mutatedText, type Random } from "./random.ts";
import type { FuzzedRequest } from "./request.ts";
import type { World } from "./world.ts";

const LENGTHS = [
  "-1",
  "+5",
  "5, 5",
  "5, 6",
  "abc",
  "",
  "0x5",
  "99999999999999999999",
  "6000000",
  "5\r\nContent-Length: 6",
];
const CODINGS = [
  "chunked",
  "identity",
  "gzip, chunked",
  "chunked, chunked",
  "xchunked",
  "\tchunked",
  "chunked\r\nContent-Length: 5",
];
const CHUNKS = [
  "5\r\nhello\r\n0\r\n\r\n",
  "zz\r\n",
  "-1\r\n",
  "ffffffffffffffff\r\nhello",
  "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
  "0\r\n",
  "",
];
const TARGETS = [
  "/intake",
  "/platform/webhooks",
  "/api/v1/orders",
  "/healthz",
  "/admin",
  "*",
  "http://other/healthz",
  "/%",
  "\\",
];

/** Makes a request with a wrong or odd framing: lengths, codings, chunks, request lines, header lines. */
export function framingRequest(random: Random, { shops }: World): FuzzedRequest {
  const shop = random.pick(shops);
  const method = random.pick(["GET", "POST", "HEAD", "CONNECT", "TRACE", "get", "FOO", "", "G\u0000T"]);
  const target = random.pick(TARGETS);
  const version = random.pick(["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.1 x", ""]);
  const lines = [`${method} ${target} ${version}`, `Host: ${random.pick(["x", "", "a b", "[::", "x:99999"])}`];
  if (random.chance(0.5)) lines.push(`Content-Length: ${random.pick(LENGTHS)}`);
  if (random.chance(0.5)) lines.push(`Transfer-Encoding: ${random.pick(CODINGS)}`);
  if (random.chance(0.1)) lines.push(`X: ${"a".repeat(random.pick([1_000, 9_000, 20_000]))}`);
  if (random.chance(0.1)) lines.push("Expect: 100-continue");
  if (random.chance(0.1)) lines.push(" folded");
  if (random.chance(0.1)) lines.push("Upgrade: h2c", "Connection: Upgrade");
  const text = `${lines.join(random.pick(["\r\n", "\r\n", "\r\n", "\n"]))}\r\n\r\n${random.pick(CHUNKS)}`;
  const raw = random.chance(0.3) ? mutatedText(random, text) : text;
  return { kind: "raw", method, target, headers: [], as: shop, raw };
}
