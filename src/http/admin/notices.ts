import type { AdminDependencies, Notice } from "./admin-request.ts";
import type { Session } from "./sessions.ts";

/** Notices that are not shown within this time are dropped, with their secrets. */
const LIFE_MS = 5 * 60_000;

export interface Notices {
  /** Stores notices for the session's next page at a path. */
  put(session: Session, path: string, notices: readonly Notice[]): Promise<void>;
  /** Returns the notices for a session and path, and removes them. */
  take(session: Session, path: string): Promise<Notice[]>;
}

/** Stores notices in the database, because another node may serve the next page. */
export function createNotices({ store, now }: Pick<AdminDependencies, "store" | "now">): Notices {
  return {
    async put({ hash }, path, notices) {
      if (notices.length === 0) return;
      await store.settingsPage.putNotice(hash, path, JSON.stringify(notices), now() + LIFE_MS);
    },

    async take({ hash }, path) {
      const texts = await store.settingsPage.takeNotices(hash, path, now());
      return texts.flatMap((text) => JSON.parse(text) as Notice[]);
    },
  };
}
