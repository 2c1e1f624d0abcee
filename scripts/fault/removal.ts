import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inFolder, postRemoval, rowsOfShop, shopRow } from "../../test/support/removed-shop.ts";
import { compiledProgram, type Server } from "./program.ts";
import { makeTwoShops, REMOVED, removalEnv, type TwoShops, untilRemoved } from "./two-shops.ts";

const ROUNDS = Number(process.argv[2] ?? 20);
const ROWS = 1_000;
const KILLS = 8;
/** Longest time from a start to the kill. */
const LATEST_KILL_MS = 700;

const folder = mkdtempSync(join(tmpdir(), "sds-removal-"));
const env = removalEnv(folder);

interface Round {
  killsBeforeAnswer: number;
  killsAfterAnswer: number;
}

/** Posts the platform's request to remove the shop until the answer is 200. Kills the program after each start. */
async function killUntilAnswered(start: () => Promise<Server>, round: Round): Promise<void> {
  for (;;) {
    const server = await start();
    const waitMs = Math.random() * 25;
    const answer = postRemoval(server.url, REMOVED, "asked").then(
      ({ status }) => status,
      () => undefined,
    );
    await Bun.sleep(waitMs);
    await server.stop("SIGKILL");
    if ((await answer) === 200) return;
    round.killsBeforeAnswer += 1;
  }
}

async function runRound(data: string, { removed, checkRemoved }: TwoShops): Promise<Round> {
  const round: Round = { killsBeforeAnswer: 0, killsAfterAnswer: 1 };
  const program = compiledProgram(data, env);
  await killUntilAnswered(() => program.serve(), round);
  while (round.killsAfterAnswer < KILLS && (await shopRow(inFolder(data), REMOVED)) !== undefined) {
    const left = await rowsOfShop(inFolder(data), removed);
    if (left.inbox === undefined || left.platform_webhooks === undefined) throw new Error("the request was lost");
    const server = await program.serve();
    // The platform may send its request again at any time.
    if (Math.random() < 0.3) await postRemoval(server.url, REMOVED, "asked").catch(() => undefined);
    await Bun.sleep(Math.random() * LATEST_KILL_MS);
    await server.stop("SIGKILL");
    round.killsAfterAnswer += 1;
  }
  const server = await program.serve();
  await untilRemoved(data);
  await server.stop("SIGTERM");
  await checkRemoved(data);
  return round;
}

try {
  const template = join(folder, "template");
  const shops = await makeTwoShops(template, env, ROWS);
  let [before, after] = [0, 0];
  for (let n = 1; n <= ROUNDS; n += 1) {
    const data = join(folder, `round-${n}`);
    cpSync(template, data, { recursive: true });
    const { killsBeforeAnswer, killsAfterAnswer } = await runRound(data, shops);
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
