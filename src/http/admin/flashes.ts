import type { Notice } from "./admin-request.ts";

/** A notice that nobody came for is dropped after this time, and a secret with it. Milliseconds. */
const LIFE = 5 * 60_000;

interface Flash {
  session: string;
  path: string;
  notice: Notice;
  until: number;
}

/**
 * What a form's answer has to say on the page that follows it. Held in memory alone, for among it are new keys, which are nowhere in plain text: a restart
 * between the two requests loses one, and it has to be made again.
 */
export class Flashes {
  private readonly now: () => number;
  private waiting: Flash[] = [];

  constructor(now: () => number) {
    this.now = now;
  }

  put(session: string, path: string, notices: readonly Notice[]): void {
    const until = this.now() + LIFE;
    this.waiting = [...this.inTime(), ...notices.map((notice) => ({ session, path, notice, until }))];
  }

  /** What this session is told on this path, which is told once. */
  take(session: string, path: string): Notice[] {
    const all = this.inTime();
    const isMeant = (flash: Flash) => flash.session === session && flash.path === path;
    this.waiting = all.filter((flash) => !isMeant(flash));
    return all.filter(isMeant).map(({ notice }) => notice);
  }

  private inTime(): Flash[] {
    return this.waiting.filter(({ until }) => until > this.now());
  }
}
