/**
 * A server that is as fast as Bun can be: fetches a URL once, then answers every request with the fetched answer.
 * `bun scripts/bench/constant.ts URL KEY`
 */
import { serve } from "bun";

const [url = "", key = ""] = process.argv.slice(2);
const page = await fetch(url, { headers: { Authorization: `Bearer ${key}` } });
if (page.status !== 200) throw new Error(`${url} gave ${page.status}`);
const body = await page.text();
// Bun sets the headers Date and Content-Length itself.
const headers = Object.fromEntries([...page.headers].filter(([name]) => name !== "date" && name !== "content-length"));

const server = serve({
  hostname: "127.0.0.1",
  port: 0,
  development: false,
  fetch: () => new Response(body, { headers }),
});
process.stderr.write(`listening on ${server.url}\n`);
