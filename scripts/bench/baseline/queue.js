/**
 * Delivers webhooks without sds, for comparison: BullMQ on Redis. `node queue.js add SOCKET FILE` queues a file of
 * deliveries. `node queue.js work SOCKET URL CONCURRENCY [keep]` sends them, and ends when all are recorded as
 * completed. `keep` reuses connections.
 */
import { createHmac } from "node:crypto";
import { createReadStream } from "node:fs";
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";
import { Queue, Worker } from "bullmq";

const NAME = "deliveries";
const JOBS_AT_ONCE = 1_000;
/** The retry schedule of sds: five attempts, with the same waits. */
const OPTIONS = { attempts: 5, backoff: { type: "exponential", delay: 120_000 } };

const [verb, path, ...rest] = process.argv.slice(2);
const connection = { path };

async function readDeliveries(file) {
  const deliveries = [];
  for await (const line of createInterface({ input: createReadStream(file) })) deliveries.push(JSON.parse(line));
  return deliveries;
}

async function add(file) {
  const queue = new Queue(NAME, { connection });
  const jobs = (await readDeliveries(file)).map((data) => ({ name: "deliver", data, opts: OPTIONS }));
  for (let start = 0; start < jobs.length; start += JOBS_AT_ONCE)
    await queue.addBulk(jobs.slice(start, start + JOBS_AT_ONCE));
  await queue.close();
}

/** Posts with node:http, because Node's `fetch` takes three times as long. */

function post({ url, agent }, headers, body) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent, headers, timeout: 10_000 }, (response) => {
      response.resume();
      response.on("end", () =>
        response.statusCode < 300 ? resolve(response.statusCode) : reject(new Error(`HTTP ${response.statusCode}`)),
      );
      response.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error("timed out")));
    sent.on("error", reject);
    sent.end(body);
  });
}

function deliver(endpoint, { data: { topic, body, secret } }) {
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    "X-Service-Topic": topic,
    "X-Service-Signature": `sha256=${signature}`,
  };
  return post(endpoint, headers, body);
}

async function work(url, concurrency, keep) {
  const queue = new Queue(NAME, { connection });
  const agent = new Agent({ keepAlive: keep === "keep" });
  let left = await queue.getWaitingCount();
  const worker = new Worker(NAME, (job) => deliver({ url, agent }, job), {
    connection,
    concurrency: Number(concurrency),
  });
  worker.on("failed", (_job, error) => {
    throw error;
  });
  worker.on("completed", () => {
    left -= 1;
    if (left === 0) process.exit(0);
  });
}

await { add, work }[verb](...rest);
