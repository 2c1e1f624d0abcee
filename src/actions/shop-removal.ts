import type { Membership } from "../cluster/membership.ts";
import { messageOf, SdsError } from "../domain/error.ts";
import type { ShopRef } from "../domain/shop.ts";
import type { Log } from "../lib/log.ts";
import { createTurnLoop } from "../lib/turn-loop.ts";
import type { Sleep } from "../lib/waits.ts";
import type { ShopStore } from "../store/port/shops.ts";
import { failureFields, StoreError } from "../store/port/store-error.ts";

type Removal = Pick<ShopStore, "beginRemoval" | "removing" | "removeSome">;

/** Continues the started removals of shops while `serve` runs. */
export interface ShopRemover {
  /** Requests a turn. Called once a second, and when a removal begins. */
  wake(): void;
  /** Stops after the current step. The next `serve` continues the removal. May be called twice. */
  stop(): Promise<void>;
}

interface RemoverDependencies {
  shops: Pick<Removal, "removing" | "removeSome">;
  membership: Pick<Membership, "mayBegin">;
  sleep: Sleep;
  log: Log;
}

/**
 * Removes the shops whose removal began. Each turn makes one step for each shop, again and again until all shops are
 * removed. The shops are marked in the database, and every turn looks for the marks. So a locked database, a full disk
 * or a crash only delays a removal. If a step fails, the turn continues with the other shops, and then throws the
 * error.
 */
export function createShopRemover({ shops, membership, sleep, log }: RemoverDependencies): ShopRemover {
  const loop = createTurnLoop({
    turn,
    sleep,
    onFailure: (thrown) => {
      const message = "cannot go on with the removal of a shop; nothing is lost, the next turn tries again";
      log.error(message, failureFields(thrown));
    },
  });

  async function turn(): Promise<void> {
    let left = (await shops.removing()).filter(({ id }) => membership.mayBegin(id));
    const errors: unknown[] = [];
    while (left.length > 0) {
      const unfinished: ShopRef[] = [];
      for (const shop of left) {
        if (loop.stopping) return;
        try {
          if (await removeSomeAndRest(shops, shop.id, sleep)) unfinished.push(shop);
          else log.info("a shop was removed with everything that was stored about it", { shop: shop.domain });
        } catch (thrown) {
          // The database is locked, so the other shops would fail too.
          if (thrown instanceof StoreError && thrown.reason === "busy") throw thrown;
          errors.push(thrown);
        }
      }
      // Another node may have taken over some of these shops.
      left = unfinished.filter(({ id }) => membership.mayBegin(id));
    }
    if (errors.length > 0) throw errors[0];
  }

  return { wake: loop.wake, stop: loop.stop };
}

/** Removes a shop, or finishes an interrupted removal. @returns false if there is no shop @throws SdsError `failed` */
export async function removeShop(shops: Removal, domain: string, now: number, sleep: Sleep): Promise<boolean> {
  const shop = await shops.beginRemoval(domain, now);
  if (shop === undefined) return false;
  await finishRemoval(shops, shop, sleep);
  return true;
}

/** Removes the rest of a shop whose removal has begun. @throws SdsError `failed` */
export async function finishRemoval(
  shops: Pick<Removal, "removeSome">,
  { id, domain }: ShopRef,
  sleep: Sleep,
): Promise<void> {
  try {
    while (await removeSomeAndRest(shops, id, sleep));
  } catch (thrown) {
    const message =
      `the removal of ${domain} began and is not finished: ${messageOf(thrown)}; ` +
      "`sds serve` goes on with it, or run this command again";
    throw new SdsError("failed", message, { cause: thrown });
  }
}

/** Removes some rows, then rests for the same time, so that other work can lock the database. */
async function removeSomeAndRest(shops: Pick<Removal, "removeSome">, shopId: number, sleep: Sleep): Promise<boolean> {
  const began = performance.now();
  const isLeft = await shops.removeSome(shopId);
  if (isLeft) await sleep(Math.ceil(performance.now() - began));
  return isLeft;
}
