import { freeBytes } from "../store/files/disk-space.ts";
import type { DatabaseFigures } from "../store/port/store.ts";
import type { Totals } from "../store/port/totals.ts";
import type { AppResources } from "./work.ts";

/** Minimum pause after a reading of the figures, as a multiple of the duration of that reading. */
const REST = 20;

/** Numbers about the database and the disk, from one reading. */
export interface Figures {
  totals: Totals;
  database: DatabaseFigures;
  /** Bytes that this user may still write to the data folder; null without a folder. */
  diskFreeBytes: number | null;
}

/** Keeps the figures of the database for scrapes, so that no scrape asks the database. */
export function createFigures({ config, store, now, clock }: AppResources) {
  let figures: Figures | undefined;
  let endedAt = Number.NEGATIVE_INFINITY;
  let tookMs = 0;

  return {
    /** Returns the last figures; undefined before the first reading. */
    last: () => figures,

    /** Reads the figures. Does nothing during the pause after the previous reading. */
    async read(): Promise<void> {
      if (clock() - endedAt < REST * tookMs) return;
      const beganAt = clock();
      try {
        const [totals, database] = [await store.totals.read(now()), await store.figures()];
        figures = { totals, database, diskFreeBytes: freeBytes(config.data) ?? null };
      } finally {
        endedAt = clock();
        tookMs = endedAt - beganAt;
      }
    },
  };
}
