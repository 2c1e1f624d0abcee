/**
 * Kills `sds restore` and the first `sds shop add` at random moments, and at each call that changes a file. After each
 * kill the folder must be usable. After a restore it has the old rows or the new ones. After a first start it has one
 * master key and at most one shop. Restores are killed in a usual folder, and in a folder whose database is a link.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { $ } from "bun";
import { listeningUrl } from "../listening-url.ts";

const ROUNDS = Number(process.argv[2] ?? 100);
const CUSTOMERS = 5_000;
const PROGRAM = join(import.meta.dir, "../../dist/sds");
const top = mkdtempSync(join(tmpdir(), "sds-fault-"));

const sds = (data: string, ...args: string[]) => $`${PROGRAM} --data ${data} ${args}`.quiet();

/** Runs a command and kills it after a while. @returns whether it ended before the kill */
async function killAfter(ms: number, data: string, ...args: string[]): Promise<boolean> {
  const child = Bun.spawn([PROGRAM, "--data", data, ...args], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  const timer = setTimeout(() => child.kill("SIGKILL"), ms);
  const status = await child.exited;
  clearTimeout(timer);
  return status === 0;
}

/** System calls that change files. SQLite writes a database and its log with pwrite64. */
const CALLS = "fsync,fdatasync,rename,link,unlink,mkdir,write,pwrite64,ftruncate";

/**
 * Runs a command under strace, which kills it at the n-th of these calls.
 * @returns whether it ended before that call
 */
async function killAtCall(n: number, data: string, ...args: string[]): Promise<boolean> {
  const inject = `inject=${CALLS}:signal=KILL:when=${n}`;
  const strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", `trace=${CALLS}`, "-e", inject];
  const child = Bun.spawn([...strace, PROGRAM, "--data", data, ...args], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  return (await child.exited) === 0;
}

/**
 * Returns the shortest time of a few runs, to plan kills. On a busy machine, an average would be too long: most runs
 * would end before their kill.
 */
async function shortest(run: () => PromiseLike<unknown>): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 5; n++) {
    const startedAt = performance.now();
    await run();
    leastMs = Math.min(leastMs, performance.now() - startedAt);
  }
  return leastMs;
}

/**
 * Picks the time of a kill. The first half of a run is left out: it only starts the program, and changes nothing yet.
 */
function randomMoment(tookMs: number): number {
  return (0.5 + 1.5 * Math.random()) * tookMs;
}

function records(name: string): Buffer {
  const lines = Array.from({ length: CUSTOMERS }, (_, n) =>
    JSON.stringify({ type: "customer", shopifyId: `gid://shopify/Customer/${n + 1}`, firstName: `${name} ${n}` }),
  );
  return Buffer.from(lines.join("\n"));
}

/** Serves the folder. @returns a hash of all customers */
async function served(data: string, key: string): Promise<string> {
  const server = Bun.spawn([PROGRAM, "--data", data, "serve", "--port", "0"], { stdout: "ignore", stderr: "pipe" });
  try {
    const url = await listeningUrl(server.stderr);
    const hash = new Bun.CryptoHasher("sha256");
    for (let cursor: string | null = ""; cursor !== null; ) {
      const query: string = cursor === "" ? "limit=250" : `limit=250&cursor=${cursor}`;
      const answer = await fetch(`${url}/api/v1/customers?${query}`, { headers: { Authorization: `Bearer ${key}` } });
      const body = await answer.text();
      if (answer.status !== 200) throw new Error(`${answer.status} ${body}`);
      hash.update(body);
      cursor = (JSON.parse(body) as { page: { nextCursor: string | null } }).page.nextCursor;
    }
    return hash.digest("hex");
  } finally {
    // A kill leaves the write-ahead log beside the database. The next restore must not mix this log with its copy.
    server.kill("SIGKILL");
    await server.exited;
  }
}

async function killRestores(isLinked: boolean): Promise<string> {
  const data = join(top, isLinked ? "linked" : "restored");
  await sds(data, "shop", "add", "alpha.myshopify.com");
  const databases = isLinked ? join(top, "elsewhere") : data;
  if (isLinked) {
    mkdirSync(databases);
    renameSync(join(data, "sds.db"), join(databases, "real.db"));
    symlinkSync(join(databases, "real.db"), join(data, "sds.db"));
  }
  const key = (await sds(data, "key", "create", "--label", "Test").text()).trim();
  const copies: string[] = [];
  const states: string[] = [];
  for (const name of ["Ada", "Bob"]) {
    await $`${PROGRAM} --data ${data} import - < ${records(name)}`.quiet();
    states.push(await served(data, key));
    copies.push(join(top, `${name}-${isLinked}.db`));
    await sds(data, "backup", copies.at(-1) ?? "");
  }
  const tookMs = await shortest(() => sds(data, "restore", copies[0] ?? "", "--yes"));
  let now = 0;
  const seen = { old: 0, new: 0, ended: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const wanted = 1 - now;
    const ended = await killAfter(randomMoment(tookMs), data, "restore", copies[wanted] ?? "", "--yes");
    const state = states.indexOf(await served(data, key));
    if (state === -1 || (ended && state !== wanted)) throw new Error(`round ${round}: a third state in ${data}`);
    seen[ended ? "ended" : state === wanted ? "new" : "old"] += 1;
    now = state;
  }
  let calls = 0;
  for (let ended = false; !ended; calls++) {
    const wanted = 1 - now;
    ended = await killAtCall(calls + 1, data, "restore", copies[wanted] ?? "", "--yes");
    const state = states.indexOf(await served(data, key));
    if (state === -1 || (ended && state !== wanted)) throw new Error(`call ${calls + 1}: a third state in ${data}`);
    now = state;
  }
  await sds(data, "restore", copies[0] ?? "", "--yes");
  const left = [data, databases].flatMap((each) => readdirSync(each)).filter((name) => /partial|restored/.test(name));
  if (left.length > 0) throw new Error(`left behind: ${left.join(", ")}`);
  return `restores${isLinked ? " behind a link" : ""}: ${seen.old} killed with the old state, ${seen.new} with the new one, ${seen.ended} ended (${Math.round(tookMs)} ms each); killed at each of ${calls} calls`;
}

async function killFirstStarts(): Promise<string> {
  const args = ["shop", "add", "alpha.myshopify.com"];
  let folders = 0;
  const tookMs = await shortest(() => sds(join(top, `timed-${folders++}`, "data"), ...args));
  let killed = 0;
  let calls = 0;
  for (let isLast = false; !isLast; calls++) {
    const data = join(top, `call-${calls}`, "data");
    isLast = await killAtCall(calls + 1, data, ...args);
    await checkFirstStart(data, args, isLast);
  }
  for (let round = 0; round < ROUNDS; round++) {
    const data = join(top, `first-${round}`, "data");
    // Two programs run at once, as when a service and a command start together.
    const runs = [1, 2].map(() => killAfter(randomMoment(tookMs), data, ...args));
    const ended = (await Promise.all(runs)).includes(true);
    if (!ended) killed += 1;
    await checkFirstStart(data, args, ended);
  }
  return `first starts: ${ROUNDS} pairs, in ${killed} both were killed (${Math.round(tookMs)} ms each); killed at each of ${calls} calls`;
}

async function checkFirstStart(data: string, args: string[], ended: boolean): Promise<void> {
  const key = join(data, "master.key");
  const before = existsSync(key) ? readFileSync(key, "utf8") : undefined;
  const added = await sds(data, ...args).nothrow();
  if (ended && added.exitCode === 0) throw new Error(`${data}: an acknowledged shop was lost`);
  const secret = (await sds(data, "intake", "secret").text()).trim();
  const left = readdirSync(data).filter((name) => /partial|new$/.test(name));
  if (!secret.startsWith("intake_") || left.length > 0) throw new Error(`${data}: ${secret} ${left.join(", ")}`);
  if (before !== undefined && readFileSync(key, "utf8") !== before) throw new Error(`${data}: the key has changed`);
  rmSync(join(data, ".."), { recursive: true });
}

for (const isLinked of [false, true]) process.stdout.write(`${await killRestores(isLinked)}\n`);
process.stdout.write(`${await killFirstStarts()}\n`);
rmSync(top, { recursive: true });
