import { type Actor, auditEntry } from "../../domain/audit.ts";
import { messageOf, SdsError } from "../../domain/error.ts";
import { randomId } from "../../domain/ids.ts";
import { type Departure, type MovedShop, movesElsewhere, overtaken } from "../port/shop-moves.ts";
import type { Store } from "../port/store.ts";
import { copyDifferences } from "./move-rows.ts";

type MoveStore = Pick<Store, "moves" | "epoch" | "formerEpochs">;

export interface MoveRequest {
  source: MoveStore;
  target: MoveStore;
  domain: string;
  actor: Actor;
  now: () => number;
  random: (bytes: number) => Uint8Array;
  sleep: (ms: number) => Promise<void>;
  /** Called with the number of rows read so far in a pass. */
  onRows: (rows: number) => void;
  /** Called when the shop's writes stop. */
  onStop: () => void;
}

/** After a pass that wrote fewer rows than this, the shop is stopped for the last pass. */
const FEW_ROWS = 1_000;
/** A shop that changes faster than it is copied is stopped after this many passes. */
const MAX_PASSES = 10;
/** Interval between two checks for running delivery attempts and token renewals. */
const POLL_MS = 100;
/** Maximum wait for running delivery attempts and token renewals, which take less time. */
const MAX_WAIT_MS = 120_000;

/**
 * Moves a shop to another database while it is served. Passes copy the differences until few are left. Then the writes
 * of the shop stop, a last pass copies the rest, and the target activates the shop in one transaction. The shop belongs
 * to the source until the activation, and to the target after it. After an interruption, another call with the same
 * request continues the move.
 * @returns false if the source has no such shop, and no move took the shop away. After true, the caller removes the
 *   rows in the source
 * @throws SdsError `conflict` if the target is the source or has another shop of this domain, the shop moves to another
 *   database, or another caller moves it; `failed`
 */
export async function moveShop(request: MoveRequest): Promise<boolean> {
  const { source, target, domain, random } = request;
  if (nameOf(source) === nameOf(target))
    throw new SdsError("conflict", "that is the database that the shop is to leave, or a copy of it: name another one");
  const departure = await source.moves.begin(domain, randomId("move_", random), nameOf(target));
  if (departure === undefined) return hasMoved(request);
  if ((await target.moves.arrival(departure.move)) !== "arrived") {
    const shop = await arrive(request, departure);
    const stop = randomId("stop_", random);
    await target.moves.arm(departure.move, stop);
    await copyWhileServed(request, departure, { shop, stop });
    await stopAndActivate(request, departure, { shop, stop });
  }
  await source.moves.leave(departure.move);
  return true;
}

/** Whether an earlier call moved the shop to the target. @throws SdsError `conflict` if it moved to another database */
async function hasMoved({ source, target, domain }: MoveRequest): Promise<boolean> {
  const found = await source.moves.find(domain);
  if (found?.state !== "moved") return false;
  if ((await target.moves.arrival(found.move)) === "arrived") return true;
  throw new SdsError("conflict", `${domain} has moved away from here before, and not to that database`);
}

/** Names a database without revealing its epoch. */
function nameOf({ epoch }: MoveStore): string {
  return Bun.SHA256.hash(epoch, "hex");
}

/** Adds the shop to the target. If the target refuses the move, the source forgets the move. */
async function arrive({ source, target, now }: MoveRequest, departure: Departure): Promise<MovedShop> {
  try {
    return await target.moves.arrive(departure, now());
  } catch (thrown) {
    // Another command may have added the shop in the meantime. Then the source must not forget the move.
    if ((await target.moves.arrival(departure.move)) === undefined) await source.moves.forget(departure.move);
    throw thrown;
  }
}

/** The shop in the target, and the id that lets this call write its rows. */
interface ArrivingShop {
  shop: MovedShop;
  stop: string;
}

async function copyWhileServed(request: MoveRequest, departure: Departure, arrival: ArrivingShop): Promise<void> {
  for (let passes = 0; passes < MAX_PASSES; passes += 1)
    if ((await copyPass(request, departure, arrival)) < FEW_ROWS) return;
}

function copyPass(
  { source, target, onRows }: MoveRequest,
  departure: Departure,
  arrival: ArrivingShop,
): Promise<number> {
  let rows = 0;
  return copyDifferences(
    { moves: source.moves, shop: departure.shop },
    { moves: target.moves, move: departure.move, ...arrival },
    (read) => {
      rows += read;
      onRows(rows);
    },
  );
}

/** Stops the shop, copies the rest and activates the shop. After a failure the source serves the shop again. */
async function stopAndActivate(request: MoveRequest, departure: Departure, arrival: ArrivingShop): Promise<void> {
  const { source, target, now, actor, onStop } = request;
  const { move } = departure;
  const { stop } = arrival;
  try {
    await waitUntil(request, () => source.moves.stop(move, stop, now()));
    onStop();
    await target.moves.arm(move, stop);
    await waitUntil(request, async () => (await source.moves.sending(move, now())) === 0);
    await copyPass(request, departure, arrival);
    const { epoch, formerEpochs } = source;
    const origin = { epoch, formerEpochs, shopId: departure.shop.id };
    if (await target.moves.activate(move, stop, origin, auditEntry(actor, now(), "shop.moved"))) return;
  } catch (thrown) {
    await goOn(request, move, stop, thrown);
    return;
  }
  await goOn(request, move, stop, overtaken());
}

/** Returns if the target already serves the shop. Otherwise, lets the source serve the shop again, and throws. */
async function goOn({ source, target }: MoveRequest, move: string, stop: string, cause: unknown): Promise<void> {
  const reason = messageOf(cause);
  try {
    // The activation may have succeeded, although its answer was lost.
    if (!(await target.moves.disarm(move, stop))) return;
    await source.moves.goOn(move, stop);
  } catch (thrown) {
    if (thrown instanceof SdsError && thrown.code === "conflict") {
      // The source gave up the move, for example because the shop was removed. So the target must not keep its copy. If
      // `refuse` fails, `sds doctor` finds the copy.
      await target.moves.refuse(move).catch(() => undefined);
      throw cause;
    }
    throw new SdsError(
      "failed",
      `the shop is stopped: ${reason}; then: ${messageOf(thrown)}. Run the command again when both databases answer, ` +
        "or with --cancel",
      { cause },
    );
  }
  if (cause instanceof SdsError) throw cause;
  throw new SdsError("failed", `the shop did not move, and is served as before: ${reason}`, { cause });
}

/**
 * Gives up a move. The source serves the shop again, and the target removes the copied rows.
 * @returns whether there was a move
 * @throws SdsError `conflict` if the target serves the shop already, or another caller moves it
 */
export async function cancelMove(request: MoveRequest): Promise<boolean> {
  const { source, target, domain } = request;
  const found = await source.moves.find(domain);
  if (found?.state !== "leaving") return false;
  if (found.target !== nameOf(target)) throw movesElsewhere(domain);
  await keepHere(request, found.move, async () => {
    if (await target.moves.refuse(found.move)) return;
    throw new SdsError("conflict", `${domain} has moved already: run the command without --cancel, which finishes it`);
  });
  return true;
}

/**
 * Gives up a move whose other database is lost for good. A leaving shop stays here. An arriving shop is marked for
 * removal, because its copy may be incomplete.
 * @returns whether there was a move
 * @throws SdsError `conflict` if another caller moves the shop, or the shop has arrived meanwhile
 */
export async function abandonMove(request: Omit<MoveRequest, "target">): Promise<boolean> {
  const { source, domain } = request;
  const found = await source.moves.find(domain);
  if (found === undefined || found.state === "moved") return false;
  if (found.state === "leaving") await keepHere(request, found.move, async () => undefined);
  else if (!(await source.moves.refuse(found.move)))
    throw new SdsError("conflict", `${domain} has arrived meanwhile, and is served here`);
  return true;
}

/** Lets the source serve a shop again. First stops the shop, so that no other caller can move it meanwhile. */
async function keepHere(
  { source, now, random, sleep }: Omit<MoveRequest, "target">,
  move: string,
  refuse: () => Promise<void>,
): Promise<void> {
  const stop = randomId("stop_", random);
  await waitUntil({ now, sleep }, () => source.moves.stop(move, stop, now()));
  await refuse();
  if (!(await source.moves.goOn(move, stop))) throw overtaken();
  await source.moves.forget(move);
}

/** @throws SdsError `failed` after MAX_WAIT_MS */
async function waitUntil(
  { sleep, now }: Pick<MoveRequest, "sleep" | "now">,
  isDone: () => Promise<boolean>,
): Promise<void> {
  const until = now() + MAX_WAIT_MS;
  while (!(await isDone())) {
    if (now() > until) throw new SdsError("failed", "deliveries of the shop, or a renewal of its tokens, do not end");
    await sleep(POLL_MS);
  }
}
