import type { AdminDependencies, Notice } from "./admin-request.ts";
import type { Session } from "./sessions.ts";

/** Notices that are not shown within this time are dropped, and secrets with them. */
const LIFE_MS = 5 * 60_000;

export interface Notices {
  /** Keeps notices for the next page that a session opens at a path. */
  put(session: Session, path: string, notices: readonly Notice[]): Promise<void>;
  /** The notices for a session at a path. Each is given once. */
  take(session: Session, path: string): Promise<Notice[]>;
}

/** Keeps the notices of a form until the page that follows it, which another node may answer. */
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
