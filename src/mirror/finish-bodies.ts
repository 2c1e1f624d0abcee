import { SdsError } from "../domain/error.ts";
import type { ShopRef } from "../domain/shop.ts";
import { nextTurn } from "../lib/turns.ts";
import type { IntakeBodyStore } from "../store/port/intake-bodies.ts";
import type { MirrorStore } from "../store/port/mirror.ts";

/** Limits of a commit. `serve` may run, and must not wait for long. */
const LIMITS = { parts: 16, characters: 256 * 1024 };

/**
 * Applies the large bodies of the intake that a shop has waiting. A command that writes records calls it first: the
 * rest of an older body would overwrite them. It takes turns with a `serve` that applies the same body.
 * @throws SdsError `failed` for a body that cannot be applied: `serve` drops it
 */
export async function finishBodies(
  { mirror, intakeBodies }: { mirror: Pick<MirrorStore, "applyIntakeParts">; intakeBodies: IntakeBodyStore },
  { id }: ShopRef,
  now: () => number,
): Promise<void> {
  for (;;) {
    const body = (await intakeBodies.oldestOfEachShop()).find(({ shop }) => shop.id === id);
    if (body === undefined) return;
    const result = await mirror.applyIntakeParts(body, LIMITS, now());
    if (result !== undefined && "refused" in result) {
      const why = `a record ${result.refused.reason}`;
      throw new SdsError(
        "failed",
        `a body of the intake waits and cannot be applied, ${why}: start \`sds serve\` first`,
      );
    }
    await nextTurn();
  }
}
