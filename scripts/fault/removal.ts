import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  addBigShop,
  fileHas,
  platformSecretEnv,
  postRemoval,
  rowsOfShop,
  shopRow,
} from "../../test/support/removed-shop.ts";
import { compiledProgram, type Server } from "./program.ts";

const [ALPHA, BETA] = ["alpha.myshopify.com", "beta.myshopify.com"];
const ROUNDS = Number(process.argv[2] ?? 20);
const ROWS = 1_000;
const KILLS = 8;
/** A kill comes within this time after the start, or after the request. */
const LATEST_KILL_MS = 700;
const END_TIMEOUT_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "sds-removal-"));
const env = { ...platformSecretEnv(folder), SDS_LOG: "error" };

interface Round {
  killsBeforeAnswer: number;
  killsAfterAnswer: number;
}

/** Posts the request until it is answered with 200, as the platform does; each start is followed by a kill. */
async function killUntilAnswered(start: () => Promise<Server>, round: Round): Promise<void> {
  for (;;) {
    const server = await start();
    const waitMs = Math.random() * 25;
    const answer = postRemoval(server.url, ALPHA, "asked").then(
      ({ status }) => status,
      () => undefined,
    );
    await Bun.sleep(waitMs);
    await server.stop("SIGKILL");
    if ((await answer) === 200) return;
    round.killsBeforeAnswer += 1;
  }
}

async function untilGone(data: string): Promise<void> {
  const deadline = performance.now() + END_TIMEOUT_MS;
  while (shopRow(data, ALPHA) !== undefined) {
    if (performance.now() > deadline) throw new Error("the shop is still there");
    await Bun.sleep(20);
  }
}

async function runRound(data: string, alpha: number, beta: number, untouched: string): Promise<Round> {
  const round: Round = { killsBeforeAnswer: 0, killsAfterAnswer: 1 };
  const program = compiledProgram(data, env);
  await killUntilAnswered(() => program.serve(), round);
  while (round.killsAfterAnswer < KILLS && shopRow(data, ALPHA) !== undefined) {
    const left = rowsOfShop(data, alpha);
    if (left.inbox === undefined || left.platform_webhooks === undefined) throw new Error("the request was lost");
    const server = await program.serve();
    // The platform may send its request again at any time.
    if (Math.random() < 0.3) await postRemoval(server.url, ALPHA, "asked").catch(() => undefined);
    await Bun.sleep(Math.random() * LATEST_KILL_MS);
    await server.stop("SIGKILL");
    round.killsAfterAnswer += 1;
  }
  const server = await program.serve();
  await untilGone(data);
  await server.stop("SIGTERM");
  const left = rowsOfShop(data, alpha);
  if (Object.keys(left).length > 0) throw new Error(`rows were left: ${JSON.stringify(left)}`);
  if (fileHas(data, "Lovelace")) throw new Error("a text was left in the file");
  if (JSON.stringify(rowsOfShop(data, beta)) !== untouched) throw new Error("the other shop changed");
  if (!fileHas(data, "Hopper")) throw new Error("the search in the file does not work");
  return round;
}

try {
  const template = join(folder, "template");
  const program = compiledProgram(template, env);
  const run = (args: string[], stdin?: string) => program.run(args, stdin);
  await addBigShop(run, ALPHA, "Lovelace", ROWS);
  await addBigShop(run, BETA, "Hopper", 20);
  const [alpha, beta] = [ALPHA, BETA].map((domain) => Number(shopRow(template, domain)?.["id"]));
  if (alpha === undefined || beta === undefined) throw new Error("the shops were not added");
  const untouched = JSON.stringify(rowsOfShop(template, beta));
  let [before, after] = [0, 0];
  for (let n = 1; n <= ROUNDS; n += 1) {
    const data = join(folder, `round-${n}`);
    cpSync(template, data, { recursive: true });
    const { killsBeforeAnswer, killsAfterAnswer } = await runRound(data, alpha, beta, untouched);
    before += killsBeforeAnswer;
    after += killsAfterAnswer;
    rmSync(data, { recursive: true });
  }
  process.stdout.write(
    `${ROUNDS} removals ended, after ${before} kills before the answer and ${after} kills after it\n`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
