import { GroupCommit } from "../../lib/group-commit.ts";
import type { InboxStore, Receipt } from "../../store/sqlite/inbox.ts";

/** Writes platform webhooks into the inbox. Webhooks that arrive at the same time share a commit. */
export interface InboxWriter {
  /** Resolves after the commit. @returns whether the webhook is new */
  receive(receipt: Receipt): Promise<boolean>;
  /** Waits for all webhooks received so far. May be called twice. */
  drain(): Promise<void>;
}

/** Characters of bodies in one commit. */
const MAX_COMMIT_SIZE = 8 * 1024 * 1024;

/** @param onReceived is called after each commit that brought a new webhook */
export function createInboxWriter(inbox: Pick<InboxStore, "receive">, now: () => number, onReceived: () => void): InboxWriter {
  async function commit(receipts: Receipt[]): Promise<boolean[]> {
    const areNew = await inbox.receive(receipts, now());
    if (areNew.includes(true)) onReceived();
    return areNew;
  }

  const group = new GroupCommit(commit, ({ body }) => body.length, MAX_COMMIT_SIZE);
  return { receive: (receipt) => group.submit(receipt), drain: () => group.drain() };
}
