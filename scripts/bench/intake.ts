import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { type Server, serveCommand, startPinnedServer } from "./servers.ts";
import { buildProgram, emptyShop, SDS } from "./shops.ts";
import { rounded, Table } from "./table.ts";

const BYTES = 5 * 1024 * 1024;
const DOMAIN = "bench.myshopify.com";
const LIMIT_MS = 50;

/** Lines of 5 MiB at most. */
function lines(make: (n: number) => object): string[] {
  const made: string[] = [];
  for (let n = 1, bytes = 0; ; n += 1) {
    const line = JSON.stringify(make(n));
    bytes += line.length + 1;
    if (bytes > BYTES - 100) return made;
    made.push(line);
  }
}

const customer = (n: number) => ({ type: "customer", shopifyId: `gid://shopify/Customer/${n}` });
const subscription = (n: number) => ({
  type: "subscription",
  shopifyId: `gid://shopify/SubscriptionContract/${n}`,
  customer: `gid://shopify/Customer/${n}`,
  status: "ACTIVE",
  interval: "MONTH",
  intervalCount: 1,
  sellingPlanId: null,
  lines: [],
  nextBillingDate: null,
  startedAt: "2026-01-01T00:00:00Z",
});

const BODIES: Record<string, () => string> = {
  "customers, as an array": () => `[${lines(customer).join(",")}]`,
  "the same again": () => `[${lines(customer).join(",")}]`,
  "subscriptions, as lines": () => lines(subscription).join("\n"),
  "records of which the last is bad": () => `[${lines(customer).join(",")},5]`,
  "bad lines": () => "x\n".repeat(BYTES / 2),
  brackets: () => "[".repeat(BYTES),
};

/** Posts a body with a program of its own, so that it does not slow what is measured here. */
async function post(
  server: Server,
  secret: string,
  file: string,
  body: string,
): Promise<{ answer: string; ms: number }> {
  writeFileSync(file, body);
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = [
    "-H",
    `X-Service-Shop: ${DOMAIN}`,
    "-H",
    `X-Service-Signature: sha256=${signature}`,
    "-H",
    "Expect:",
  ];
  const start = performance.now();
  const answer = await $`curl -sS ${headers} --data-binary @${file} ${server.url}/intake`.quiet().text();
  return { answer, ms: performance.now() - start };
}

/** Asks for a path again and again, until it is told to stop. @returns the longest time */
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

const table = new Table();
await buildProgram();
const shop = await emptyShop("intake");
const secret = (await $`${SDS} --data ${shop.folder} intake secret`.quiet().text()).trim();
await using server = await startPinnedServer(serveCommand(SDS, shop.folder));
for (const [name, make] of Object.entries(BODIES)) {
  const body = make();
  const health = watch(`${server.url}/healthz`);
  const page = watch(`${server.url}/api/v1/customers?limit=50`, { Authorization: `Bearer ${shop.key}` });
  await Bun.sleep(200);
  const { answer, ms } = await post(server, secret, join(shop.folder, "body"), body);
  const [healthMs, pageMs] = [await health(), await page()];
  const status = answer.includes("accepted") ? "accepted" : "refused";
  const beside = ` (${status} after ${rounded(ms)} ms; a page: ${rounded(pageMs)} ms)`;
  table.addBound(`Longest /healthz beside 5 MiB of ${name}`, Math.max(healthMs, pageMs), LIMIT_MS, "ms", beside);
}
process.stdout.write(`${table}\n`);
