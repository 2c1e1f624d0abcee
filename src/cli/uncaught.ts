import { messageOf } from "../domain/error.ts";
import { isShortage } from "../lib/descriptor-reserve.ts";
import type { Log } from "../lib/log.ts";

/**
 * An error that nothing handles ends the program, except one: there was no free descriptor for a socket or a file. What
 * needed it is tried again later.
 */
export function endOnUncaught(log: Log): void {
  const onThrown = (thrown: unknown) => {
    const fields = { error: messageOf(thrown), stack: thrown instanceof Error ? thrown.stack : undefined };
    if (isShortage(thrown)) {
      log.error("a socket or file could not be opened", fields);
      return;
    }
    log.error("the program ends because of an error that nothing handled", fields);
    process.exit(1);
  };
  process.on("uncaughtException", onThrown);
  process.on("unhandledRejection", onThrown);
}
