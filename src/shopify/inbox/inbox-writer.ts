import { createGroupCommit } from "../../lib/group-commit.ts";
import type { InboxStore, Receipt } from "../../store/inbox.ts";
import { StoreError } from "../../store/store-error.ts";

/** Characters in one commit. */
const MAX_SIZE = 8 * 1024 * 1024;

/** Writes platform webhooks to the inbox. */
export interface InboxWriter {
  /** Resolves after the commit. @returns whether the platform webhook is new */
  submit(receipt: Receipt): Promise<boolean>;
  /** Waits for what was submitted. May be called twice. */
  drain(): Promise<void>;
}

/**
 * Platform webhooks that arrive at the same time share a commit.
 * @param onReceived is called after a commit with a new one
 */
export function createInboxWriter(store: InboxStore, now: () => number, onReceived: () => void): InboxWriter {
  return createGroupCommit<Receipt, boolean>({
    async commit(receipts) {
      const areNew = await store.receive(receipts, now());
      if (areNew.includes(true)) onReceived();
      return areNew;
    },
    sizeOf: ({ body }) => body.length,
    maxSize: MAX_SIZE,
    failsAll: (thrown) => thrown instanceof StoreError && thrown.reason !== "conflict",
  });
}
