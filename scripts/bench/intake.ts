import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { type Server, serveCommand, startPinnedServer } from "./servers.ts";
import { buildProgram, emptyShop, SDS } from "./shops.ts";
import { machineLine, needTwoCores, rounded, Table } from "./table.ts";

/** The limits of the intake for one body. */
const BYTES = 1024 * 1024;
const RECORDS = 250;
/** Each contract has 21 lines, so that 250 contracts fill the body. */
const LINES = Array.from({ length: 21 }, (_, n) => ({
  variantId: `gid://shopify/ProductVariant/${n + 1}`,
  productId: `gid://shopify/Product/${n + 1}`,
  title: "A blend with a long name ".repeat(2),
  quantity: 1,
  unitPriceCents: 1_250,
}));
const DOMAIN = "bench.myshopify.com";
const LIMIT_MS = 50;

const records = (make: (n: number) => object) => Array.from({ length: RECORDS }, (_, n) => JSON.stringify(make(n + 1)));
const customer = (n: number) => ({ type: "customer", shopifyId: `gid://shopify/Customer/${n}`, firstName: "Ada" });
const subscription = (n: number) => ({
  type: "subscription",
  shopifyId: `gid://shopify/SubscriptionContract/${n}`,
  customer: `gid://shopify/Customer/${n}`,
  status: "ACTIVE",
  interval: "MONTH",
  intervalCount: 1,
  sellingPlanId: null,
  lines: LINES,
  nextBillingDate: null,
  startedAt: "2026-01-01T00:00:00Z",
});

const SUBSCRIPTIONS = `[${records(subscription).join(",")}]`;
const BODIES: Record<string, string> = {
  "subscriptions, as an array": SUBSCRIPTIONS,
  "the same again": SUBSCRIPTIONS,
  "customers, as lines": records(customer).join("\n"),
  "records of which the last is bad": `[${records(subscription).slice(1).join(",")},5]`,
  "bad lines": "x\n".repeat(BYTES / 2),
  brackets: "[".repeat(BYTES),
};

/** Posts a body from a separate program, so that this process measures without pauses. */
async function post(
  server: Server,
  secret: string,
  file: string,
  body: string,
): Promise<{ status: string; ms: number }> {
  writeFileSync(file, body);
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = [`X-Service-Shop: ${DOMAIN}`, `X-Service-Signature: sha256=${signature}`, "Expect:"];
  const options = [...headers.flatMap((header) => ["-H", header]), "-o", "/dev/null", "-w", "%{http_code}"];
  const start = performance.now();
  const status = await $`curl -sS ${options} --data-binary @${file} ${server.url}/intake`.quiet().text();
  return { status, ms: performance.now() - start };
}

/** Requests a path repeatedly. @returns a function that stops the requests, and returns the longest response time */
function watch(url: string, headers: Record<string, string> = {}): () => Promise<number> {
  let longestMs = 0;
  let goesOn = true;
  const asked = (async () => {
    while (goesOn) {
      const start = performance.now();
      const response = await fetch(url, { headers });
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
      longestMs = Math.max(longestMs, performance.now() - start);
      await Bun.sleep(1);
    }
  })();
  return async () => {
    goesOn = false;
    await asked;
    return longestMs;
  };
}

needTwoCores();
const table = new Table();
await buildProgram();
const shop = await emptyShop("intake");
const secret = (await $`${SDS} --data ${shop.folder} intake secret`.quiet().text()).trim();
await using server = await startPinnedServer(serveCommand(SDS, shop.folder));
for (const [name, body] of Object.entries(BODIES)) {
  const health = watch(`${server.url}/healthz`);
  const page = watch(`${server.url}/api/v1/customers?limit=50`, { Authorization: `Bearer ${shop.key}` });
  await Bun.sleep(200);
  const { status, ms } = await post(server, secret, join(shop.folder, "body"), body);
  const longestMs = Math.max(await health(), await page());
  const what = `${rounded(body.length / 1024)} KiB of ${name}`;
  table.addBound(`Longest answer beside ${what}`, longestMs, LIMIT_MS, "ms", ` (${status} after ${rounded(ms)} ms)`);
}
process.stdout.write(`${machineLine()}\n\n${table}\n`);
