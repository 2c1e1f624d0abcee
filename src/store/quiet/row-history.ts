import { type SQL, sql as template } from "drizzle-orm";
import { SPAN_MS } from "../../domain/decide/commit.ts";
import { dayOf } from "../../lib/time.ts";
import type { RowHistoryStore, TimedUnsentEvent } from "../port/row-history.ts";
import { type QuietDatabase, sql } from "./quiet-database.ts";

export function rowHistoryStore(db: QuietDatabase): RowHistoryStore {
  return {
    async unsentEvents(shopId, subjects, since) {
      const found = await Promise.all(subjects.map(({ subject }) => unsentOf(db, shopId, subject, since)));
      return found
        .flatMap((events, index) => {
          const cycle = subjects[index]?.order?.cycle;
          return cycle === undefined ? events : events.filter((event) => event.cycle === cycle);
        })
        .sort((a, b) => a.at - b.at || (a.topic < b.topic ? -1 : 1));
    },

    async lastChange(shopId, resource, id, since) {
      const found = await db.get<{ span: number | null }>(
        sql`SELECT (
            SELECT span FROM change_spans
            WHERE change_spans.shop_id = mirrored.shop_id AND span >= ${Math.floor(since / SPAN_MS)}
              AND change_spans.number < mirrored.change_number
            ORDER BY span DESC LIMIT 1
          ) AS span
          FROM ${template.raw(resource)} AS mirrored WHERE mirrored.shop_id = ${shopId} AND mirrored.id = ${id}`,
      );
      return found?.span == null ? undefined : found.span * SPAN_MS;
    },

    async redactedAt(shopId, id) {
      const row = await db.get<{ at: number | null }>(
        sql`SELECT redacted_at AS at FROM customers WHERE shop_id = ${shopId} AND id = ${id}`,
      );
      return row?.at ?? undefined;
    },
  };
}

/** Reads the events of a subject. The day comes before the subject in the key, so this searches each stored day. */
async function unsentOf(
  db: QuietDatabase,
  shopId: number,
  subject: string,
  since: number,
): Promise<TimedUnsentEvent[]> {
  const firstDay = (condition: SQL) =>
    sql`(SELECT day FROM unsent_events WHERE shop_id = ${shopId} AND ${condition} ORDER BY day LIMIT 1)`;
  return db.all<TimedUnsentEvent>(
    sql`WITH RECURSIVE days (day) AS (
        SELECT ${firstDay(sql`day >= ${dayOf(since)}`)}
        UNION ALL
        SELECT ${firstDay(sql`unsent_events.day > days.day`)} FROM days WHERE day IS NOT NULL
      )
      SELECT subject, topic, cycle, at, reason FROM days JOIN unsent_events
        ON shop_id = ${shopId} AND unsent_events.day = days.day AND subject = ${subject}
      WHERE at >= ${since} ORDER BY at, topic, cycle`,
  );
}
