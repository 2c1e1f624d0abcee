import type { Notice } from "./admin-request.ts";

/** A notice that is not shown within this time is dropped, and a secret with it. */
const LIFE_MS = 5 * 60_000;

interface Flash {
  session: string;
  path: string;
  notice: Notice;
  /** By the clock of `createFlashes`. */
  until: number;
}

export interface Flashes {
  /** Keeps notices for the next page that a session opens at a path. */
  put(session: string, path: string, notices: readonly Notice[]): void;
  /** The notices for a session at a path. Each is given once. */
  take(session: string, path: string): Notice[];
}

/**
 * Keeps the notices of a form until the page that follows it. They are only in memory, because new keys are among them,
 * which must not be stored as plain text. A restart between the two requests loses a new key; it has to be created
 * again.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createFlashes(clock: () => number): Flashes {
  let waiting: Flash[] = [];
  const inTime = () => waiting.filter(({ until }) => until > clock());

  return {
    put(session, path, notices) {
      const until = clock() + LIFE_MS;
      waiting = [...inTime(), ...notices.map((notice) => ({ session, path, notice, until }))];
    },

    take(session, path) {
      const all = inTime();
      const isForPage = (flash: Flash) => flash.session === session && flash.path === path;
      waiting = all.filter((flash) => !isForPage(flash));
      return all.filter(isForPage).map(({ notice }) => notice);
    },
  };
}
