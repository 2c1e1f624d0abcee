import { type ShopStatus, shopStatus } from "../../actions/shop.ts";
import type { ResourceCounts } from "../../domain/decide/commit.ts";
import type { Alert } from "../../domain/deliveries/alert.ts";
import type { Shop } from "../../domain/shop.ts";
import { DAY_MS, isoUtc } from "../../lib/time.ts";
import type { AttemptFigures, DayCount } from "../../store/port/deliveries.ts";
import type { Store } from "../../store/port/store.ts";
import type { DayCounts } from "./bars.tsx";

const DAYS = 30;
/** Maximum number of waiting or delivered deliveries to count. To count 100,000 would take 0.1 s for each view. */
export const COUNTED = 10_000;

/** What the overview shows of a shop. Times in epoch milliseconds. */
export interface ShopFigures {
  status: ShopStatus;
  /** Host of the endpoint; null if no endpoint is set. */
  endpoint: string | null;
  keys: number;
  waiting: { pending: number; retrying: number; isPart: boolean };
  dead: number;
  /** Number of workflow starts that are dead. */
  deadStarts: number;
  figures: AttemptFigures;
  lastSuccess: number | null;
  delivered: number;
  days: DayCounts[];
  rows: ResourceCounts;
  lastWebhookAt: number | null;
  alerts: readonly Alert[];
  now: number;
}

export async function readFigures(store: Store, shop: Shop, now: number): Promise<ShopFigures> {
  const { deliveries } = store;
  const firstDay = Math.floor(now / DAY_MS) * DAY_MS - (DAYS - 1) * DAY_MS;
  const reads = [
    shopStatus(store, shop, now),
    store.webhooks.settings(shop.id),
    store.keys.list(shop.id),
    deliveries.countWaiting(shop.id, COUNTED),
    deliveries.countDead(shop.id, 0),
    deliveries.countDead(shop.id, 0, "trigger"),
    deliveries.recentAttempts(shop.id, "webhook", now - DAY_MS),
    deliveries.lastOutcomes(shop.id, "webhook"),
    deliveries.countDelivered(shop.id, now - DAY_MS, COUNTED),
    deliveries.countsByDay(shop.id, firstDay),
    store.shops.rowCounts(shop.id),
    store.inbox.lastReceivedAt(shop.id),
    store.alerts.list(shop.id),
  ] as const;
  const [status, { url }, keys, waiting, dead, deadStarts, figures, outcomes, delivered, counts, rows, ...others] =
    await Promise.all(reads);
  const [lastWebhookAt, alerts] = others;
  return {
    status,
    endpoint: url === null ? null : (URL.parse(url)?.host ?? url),
    keys: keys.length,
    waiting: { ...waiting, isPart: waiting.pending + waiting.retrying >= COUNTED },
    dead,
    deadStarts,
    figures,
    lastSuccess: outcomes.succeededAt,
    delivered,
    days: daysOf(counts, firstDay),
    rows,
    lastWebhookAt,
    alerts,
    now,
  };
}

/** Sums the attempts of webhooks and of workflow starts, for each day. */
function daysOf(counts: readonly DayCount[], firstDay: number): DayCounts[] {
  return Array.from({ length: DAYS }, (_, index) => {
    const start = firstDay + index * DAY_MS;
    const ofDay = counts.filter(({ day }) => day === start);
    const sum = (outcome: DayCount["outcome"]) =>
      ofDay.filter((each) => each.outcome === outcome).reduce((total, { attempts }) => total + attempts, 0);
    return { day: isoUtc(start).slice(0, 10), delivered: sum("delivered"), retried: sum("retried"), dead: sum("dead") };
  });
}
