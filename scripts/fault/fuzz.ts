import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { adminRequest } from "./fuzzing/admin.ts";
import { memoryMib, wrongInDatabase, wrongInLog, wrongInPages } from "./fuzzing/after.ts";
import { intakeRequest, platformRequest } from "./fuzzing/bodies.ts";
import { type AnswerCheck, createAnswerCheck } from "./fuzzing/checks.ts";
import { framingRequest } from "./fuzzing/framings.ts";
import { createRandom } from "./fuzzing/random.ts";
import { pathRequest, readRequest } from "./fuzzing/reads.ts";
import { bytesOf, type FuzzedRequest } from "./fuzzing/request.ts";
import { createWire, type Wire } from "./fuzzing/wire.ts";
import { addShops, platformEnv, signIn, type World } from "./fuzzing/world.ts";
import { compiledProgram, type Server } from "./program.ts";

const { values } = parseArgs({ options: { requests: { type: "string" }, seed: { type: "string" } } });
const REQUESTS = Number(values.requests ?? 20_000);
const SEED = Number(values.seed ?? Date.now() % 1_000_000);
const CONNECTIONS = 8;
const ANSWER_TIMEOUT_MS = 10_000;
const STOP_TIMEOUT_MS = 30_000;
/** The timeout of a raw request. An incomplete request gets no answer, because the server waits for the rest. */
const RAW_TIMEOUT_MS = 100;
/** After this share of the requests, the caches are full. Later memory is compared with the memory at this point. */
const WARM_PART = 0.2;
const MOST_GROWTH_MIB = 200;
const MOST_FINDINGS = 20;

/** Each function makes this percentage of the requests. */
const SHARES: [make: typeof readRequest, share: number][] = [
  [readRequest, 38],
  [pathRequest, 12],
  [intakeRequest, 22],
  [platformRequest, 10],
  [adminRequest, 15],
  [framingRequest, 3],
];
const MAKERS = SHARES.flatMap(([make, share]) => Array.from({ length: share }, () => make));

/** Makes the n-th request of a seed. It does not depend on other requests, so it can be repeated alone. */
function requestOf(n: number, world: World): FuzzedRequest {
  const random = createRandom(SEED * 1_000_003 + n);
  return random.pick(MAKERS)(random, world);
}

interface Tally {
  sent: number;
  warmMib: number;
  slowestMs: number;
  statuses: Map<string, number>;
  findings: string[];
}

async function tryOne(n: number, wire: Wire, url: string, world: World, check: AnswerCheck, tally: Tally) {
  const request = requestOf(n, world);
  const isRaw = request.kind === "raw";
  const used = isRaw ? createWire(url) : wire;
  const bytes = bytesOf(request);
  const startedAt = performance.now();
  const answer = await used.exchange(bytes, request.method === "HEAD", isRaw ? RAW_TIMEOUT_MS : ANSWER_TIMEOUT_MS);
  if (isRaw) used.close();
  else tally.slowestMs = Math.max(tally.slowestMs, performance.now() - startedAt);
  const outcome = typeof answer === "string" ? answer : String(answer.status);
  const name = `${request.kind} ${outcome}`;
  tally.statuses.set(name, (tally.statuses.get(name) ?? 0) + 1);
  const noAnswer = answer === "late" ? `had no answer within ${ANSWER_TIMEOUT_MS / 1_000} seconds` : "had no answer";
  const wrong = typeof answer === "string" ? (isRaw ? undefined : noAnswer) : check(request, answer);
  if (wrong === undefined) return;
  const shown = JSON.stringify(bytes.toString("latin1").slice(0, 1_500));
  tally.findings.push(`request ${n} ${wrong}\n    ${shown}`);
}

async function sendAll(server: Server, world: World): Promise<Tally> {
  const tally: Tally = { sent: 0, warmMib: 0, slowestMs: 0, statuses: new Map(), findings: [] };
  const check = createAnswerCheck(world);
  async function work(): Promise<void> {
    const wire = createWire(server.url);
    while (tally.sent < REQUESTS && tally.findings.length < MOST_FINDINGS) {
      const n = tally.sent++;
      if (n === Math.floor(REQUESTS * WARM_PART)) tally.warmMib = memoryMib(server.pid);
      await tryOne(n, wire, server.url, world, check, tally);
    }
    wire.close();
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
  return tally;
}

/** Stops the server, or kills it after a while. @returns whether it stopped by itself */
async function stops(server: Server): Promise<boolean> {
  let killed = false;
  const timer = setTimeout(() => {
    killed = true;
    void server.stop("SIGKILL");
  }, STOP_TIMEOUT_MS);
  await server.stop("SIGTERM");
  clearTimeout(timer);
  return !killed;
}

/** A receiver of webhooks that answers with various statuses. */
function startReceiver() {
  let received = 0;
  const statuses = [200, 200, 204, 302, 404, 500];
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(null, { status: statuses[received++ % statuses.length] ?? 200 }),
  });
}

const folder = mkdtempSync(join(tmpdir(), "sds-fuzz-"));
const receiver = startReceiver();
try {
  const data = join(folder, "data");
  const program = compiledProgram(data, platformEnv(folder));
  const shops = await addShops(program, receiver.url.href);
  const server = await program.serve();
  const world = await signIn(program, server.url, shops);
  const startedAt = performance.now();
  const { sent, warmMib, slowestMs, statuses, findings } = await sendAll(server, world);
  const seconds = (performance.now() - startedAt) / 1_000;
  const endMib = memoryMib(server.pid);
  if (endMib - warmMib > MOST_GROWTH_MIB)
    findings.push(`memory grew from ${Math.round(warmMib)} to ${Math.round(endMib)} MiB`);
  for (const shop of shops.filter(({ plan }) => plan === "pro"))
    findings.push(...(await wrongInPages(server.url, data, shop)));
  if (!(await stops(server))) findings.push("the program did not stop within 30 seconds after SIGTERM");
  findings.push(...wrongInLog(server.log(), world), ...wrongInDatabase(data));
  const counts = [...statuses].sort(([a], [b]) => a.localeCompare(b)).map(([name, count]) => `${name}: ${count}`);
  process.stdout.write(
    `seed ${SEED}: ${sent} requests in ${Math.round(seconds)} s, the slowest took ${Math.round(slowestMs)} ms; ` +
      `memory ${Math.round(warmMib)} to ${Math.round(endMib)} MiB\n${counts.join(", ")}\n` +
      (findings.length === 0 ? "nothing wrong was found\n" : `${findings.length} found:\n${findings.join("\n")}\n`),
  );
  if (findings.length > 0) process.exitCode = 1;
} finally {
  receiver.stop(true);
  rmSync(folder, { recursive: true, force: true });
}
