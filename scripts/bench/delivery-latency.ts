import { serve } from "bun";
import { Endpoint, startHanging } from "./endpoint.ts";
import * as queued from "./queued.ts";
import { median, percentile, type Server } from "./servers.ts";
import { copyFolder } from "./shops.ts";
import { post, type SignedPost } from "./signed-posts.ts";
import { rounded, type Table } from "./table.ts";

export const ROUNDS = 3;
const IDLE_EVENTS = 500;
const HANGING_SHOPS = 300;
const FLAPPING_SHOPS = 100;
const FLAP_MS = 4_000;
const FLAP_ANSWER_MS = 200;
/** How long the bench sends events. This is longer than three timeouts of an attempt. */
const HANGING_MS = 31_000;
const PAUSE_MS = 30;

interface Latency {
  /**
   * Time from the answer to the arrival at the endpoint. sds answers shortly after its commit, so this is about the
   * time since the commit.
   */
  fromAnswerMs: number;
  /** Time from the request to the arrival at the endpoint. */
  fromRequestMs: number;
}

/** Sends one event at a time. In the pause after each event, sds records the delivery. */
async function latencies(server: Server, receiver: Endpoint, events: readonly SignedPost[]): Promise<Latency[]> {
  const measured: Latency[] = [];
  for (const event of events) {
    const arrival = receiver.next();
    const sent = performance.now();
    await post(server, event);
    const answered = performance.now();
    const arrived = await arrival;
    measured.push({ fromAnswerMs: arrived - answered, fromRequestMs: arrived - sent });
    await Bun.sleep(PAUSE_MS);
  }
  return measured;
}

/** Measures how long one event takes from its commit to the endpoint, while nothing else is queued. */
export async function measureIdle(table: Table): Promise<void> {
  using receiver = new Endpoint();
  const folder = await queued.makeFolder("idle", [{ name: "shop", count: 1, endpoint: receiver.url, events: 0 }]);
  const events = await queued.postsTo(folder, "shop0.myshopify.com", IDLE_EVENTS);
  await using server = await queued.startSds(folder);
  const measured = await latencies(server, receiver, events);
  const [fromAnswer, fromRequest] = [
    measured.map((each) => each.fromAnswerMs),
    measured.map((each) => each.fromRequestMs),
  ];
  const beside = (share: number) => ` (${rounded(percentile(fromRequest, share))} ms from the request)`;
  table.addBound("Commit (the 202) to receipt, idle queue, median", percentile(fromAnswer, 0.5), 10, "ms", beside(0.5));
  table.addBound("The same, 99th percentile", percentile(fromAnswer, 0.99), 50, "ms", beside(0.99));
}

/**
 * Starts an endpoint that answers for FLAP_MS, hangs for FLAP_MS, and so on. Each answer takes FLAP_ANSWER_MS, as if
 * the endpoint were far away.
 */
function startFlapping() {
  const answers = () => Math.floor(performance.now() / FLAP_MS) % 2 === 0;
  const server = serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    idleTimeout: 60,
    fetch: async () => {
      await (answers() ? Bun.sleep(FLAP_ANSWER_MS) : new Promise(() => undefined));
      return new Response();
    },
  });
  return { url: String(server.url), [Symbol.dispose]: () => void server.stop(true) };
}

/** Starts sds and sends events for HANGING_MS. @returns milliseconds from a request to the arrival of its delivery */
async function healthyLatencies(template: string, receiver: Endpoint, events: SignedPost[]): Promise<number[]> {
  await using server = await queued.startSds(copyFolder(template, `${template}-used`));
  const end = performance.now() + HANGING_MS;
  const measured: number[] = [];
  while (performance.now() < end) {
    const [event] = events.splice(0, 1);
    if (event === undefined) throw new Error("there are too few events");
    measured.push(...(await latencies(server, receiver, [event])).map(({ fromRequestMs }) => fromRequestMs));
  }
  return measured;
}

/**
 * Measures the latency of a healthy shop, alone and among shops whose endpoints hang or flap. The healthy shop is added
 * last, so that the other shops' deliveries are due before its own.
 */
export async function measureHanging(table: Table): Promise<void> {
  using receiver = new Endpoint();
  using hanging = startHanging();
  using flapping = startFlapping();
  const healthy = { name: "healthy", count: 1, endpoint: receiver.url, events: 0 };
  const alone = await queued.makeFolder("alone", [healthy]);
  const among = await queued.makeFolder("among", [
    { name: "hanging", count: HANGING_SHOPS, endpoint: hanging.url, events: 50 },
    { name: "flapping", count: FLAPPING_SHOPS, endpoint: flapping.url, events: 200 },
    healthy,
  ]);
  const p99: Record<"alone" | "among", number[]> = { alone: [], among: [] };
  const longest: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const events = (folder: string) => queued.postsTo(folder, "healthy0.myshopify.com", HANGING_MS / PAUSE_MS);
    p99.alone.push(percentile(await healthyLatencies(alone, receiver, await events(alone)), 0.99));
    const beside = await healthyLatencies(among, receiver, await events(among));
    p99.among.push(percentile(beside, 0.99));
    longest.push(Math.max(...beside));
  }
  const [without, beside] = [median(p99.alone), median(p99.among)];
  const name = `Event sent to receipt beside ${HANGING_SHOPS} shops that hang and ${FLAPPING_SHOPS} that flap, from a cold start`;
  const values = `${rounded(beside)} ms, without ${rounded(without)} ms`;
  table.addRatioBelow(`${name}, 99th percentile`, values, beside / without, 1.5);
  table.addBound("The same, maximum", median(longest), 500, "ms");
}
