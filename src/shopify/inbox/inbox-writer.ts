import { createGroupCommit } from "../../lib/group-commit.ts";
import type { InboxStore, Receipt } from "../../store/inbox.ts";
import { StoreError } from "../../store/store-error.ts";

/** Characters in one commit. */
const MAX_SIZE = 8 * 1024 * 1024;

/** Writes the platform's webhooks to the inbox. */
export interface InboxWriter {
  /** Resolves after the commit, to whether the webhook was not received before. */
  submit(receipt: Receipt): Promise<boolean>;
  /** Waits for what was submitted. May be called twice. */
  drain(): Promise<void>;
}

/**
 * Webhooks that arrive at the same time share a commit.
 * @param onReceived is called after a commit with a new webhook
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
