import { GroupCommit } from "../../lib/group-commit.ts";
import type { InboxStore, Receipt } from "../../store/sqlite/inbox.ts";

/** Characters in one commit. */
const MAX_SIZE = 8 * 1024 * 1024;

/** Takes the platform's webhooks into the inbox; what arrives at the same time shares a commit. */
export class InboxWriter {
  private readonly group: GroupCommit<Receipt, boolean>;

  /** @param onReceived is called after a commit that brought something new */
  constructor(store: InboxStore, now: () => number, onReceived: () => void) {
    const commit = async (receipts: Receipt[]) => {
      const news = await store.receive(receipts, now());
      if (news.includes(true)) onReceived();
      return news;
    };
    this.group = new GroupCommit(commit, ({ body }) => body.length, MAX_SIZE);
  }

  /** Resolves after the commit. @returns whether it was not received before */
  receive(receipt: Receipt): Promise<boolean> {
    return this.group.submit(receipt);
  }

  /** Waits for what was received. May be called twice. */
  drain(): Promise<void> {
    return this.group.drain();
  }
}
