import { createGroupCommit, OVERTAKEN_AFTER_MS } from "../../lib/group-commit.ts";
import type { InboxStore, Receipt } from "../../store/port/inbox.ts";
import { StoreError } from "../../store/port/store-error.ts";

/** Maximum number of characters in one commit. */
const MAX_SIZE = 8 * 1024 * 1024;

/** Writes platform webhooks to the inbox. */
export interface InboxWriter {
  /** Resolves after the commit. @returns whether the platform webhook is new */
  submit(receipt: Receipt): Promise<boolean>;
  /** Waits for the submitted webhooks. May be called twice. */
  drain(): Promise<void>;
}

/** @param onReceived called after a commit with a new webhook @param isShared whether another node may lock a shop */
export function createInboxWriter(
  store: Pick<InboxStore, "receive">,
  now: () => number,
  onReceived: () => void,
  isShared = false,
): InboxWriter {
  return createGroupCommit<Receipt, boolean>({
    async commit(receipts) {
      const areNew = await store.receive(receipts, now());
      if (areNew.includes(true)) onReceived();
      return areNew;
    },
    sizeOf: ({ body }) => body.length,
    maxSize: MAX_SIZE,
    failsAll: (thrown) => thrown instanceof StoreError && thrown.reason !== "conflict",
    ...(isShared && { overtaking: { afterMs: OVERTAKEN_AFTER_MS, keyOf: ({ shopId }) => shopId } }),
  });
}
