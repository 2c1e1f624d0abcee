import {
  ALERT_CAUSES,
  type Alert,
  FAILING_ATTEMPTS,
  FAILING_MS,
  failingTrigger,
} from "../../domain/deliveries/alert.ts";
import { ENDPOINT_FAILING, type TriggerHandle, triggerBody } from "../../domain/events/trigger.ts";
import { timeOrderedId } from "../../domain/ids.ts";
import type { ConnectionKind } from "../../domain/platform/connection.ts";
import { hasAccess, type Plan } from "../../domain/shop.ts";
import type { Vault } from "../files/vault.ts";
import type { AlertChannels, AlertNotice, AlertStore, ClaimedNotice, DueAlert } from "../port/alerts.ts";
import { addressPurpose, alertAddresses } from "./alert-addresses.ts";
import { insertDelivery } from "./delivery-log.ts";
import { lockFor, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

/** SQL condition of alerts that people see. Failures of an endpoint are shown only after some time. */
const FAILING = sql`well_at IS NULL AND (told OR cause <> 'endpoint'
  OR (failures >= ${FAILING_ATTEMPTS} AND last_at - since >= ${FAILING_MS}))`;

/**
 * SQL condition of shops with dead deliveries. During a retry by hand, a shop may have no dead delivery although its
 * alert is still stored.
 */
const HAS_DEAD = sql`EXISTS (
  SELECT 1 FROM deliveries WHERE deliveries.shop_id = alerts.shop_id AND status = 'dead'
)`;

const DAY_MS = 86_400_000;

/** SQL of the columns of `Alert`. */
const ALERT = sql`cause, since, failures, last_at AS "lastAt", host, error`;

type StoredDue = Alert & {
  shopId: number;
  domain: string;
  connection: ConnectionKind | null;
  wellAt: number | null;
};

export function alertStore(db: QuietDatabase, vault: Vault, random: (bytes: number) => Uint8Array): AlertStore {
  return {
    ...alertAddresses(db, vault, random),

    async list(shopId) {
      const alerts = await db.all<Alert>(
        sql`SELECT ${ALERT} FROM alerts
          WHERE shop_id = ${shopId} AND ${FAILING} AND (cause <> 'dead' OR ${HAS_DEAD})`,
      );
      return alerts.sort((a, b) => ALERT_CAUSES.indexOf(a.cause) - ALERT_CAUSES.indexOf(b.cause));
    },

    async due(now) {
      const due = await db.all<StoredDue>(
        sql`SELECT alerts.shop_id AS "shopId", domain, (
            SELECT kind FROM connections WHERE connections.shop_id = alerts.shop_id
          ) AS connection, well_at AS "wellAt", ${ALERT}
          FROM alerts JOIN shops ON shops.id = alerts.shop_id
          WHERE removal_started_at IS NULL AND ${isDue(now)} ORDER BY alerts.shop_id, cause`,
      );
      return due.map(({ shopId, domain, wellAt, ...alert }) => ({
        ...alert,
        shop: { id: shopId, domain },
        isOver: wellAt !== null,
      }));
    },

    async tell(alert, channels, link, now) {
      return db.transaction(() => tell(db, { alert, channels, link, now }, random));
    },

    async claimNotice(now, nextAttemptAt) {
      const claimed = await db.transaction(() => claimNotice(now, nextAttemptAt));
      if (claimed === undefined) return undefined;
      const { shopId, domain, alert, address, sealed, ...rest } = claimed;
      const recipient =
        address === null || sealed === null
          ? null
          : { address, token: await vault.open(sealed, addressPurpose(shopId)) };
      const notice = alert === null ? null : (JSON.parse(alert) as AlertNotice);
      return { ...rest, shop: { id: shopId, domain }, notice, recipient };
    },

    async removeNotice(number) {
      await db.run(sql`DELETE FROM alert_notices WHERE number = ${number}`);
    },
  };
}

/** Returns the SQL condition of due alerts. Compares absolute differences, because the clock may have been set back. */
function isDue(now: number) {
  return sql`((told AND well_at IS NOT NULL)
    OR (NOT told AND ${FAILING} AND (told_at IS NULL OR abs(${now} - told_at) >= ${DAY_MS})))`;
}

interface Telling {
  alert: DueAlert;
  channels: AlertChannels;
  link: string;
  now: number;
}

function* tell(
  db: QuietDatabase,
  { alert: { shop, isOver, connection, ...alert }, channels, link, now }: Telling,
  random: (bytes: number) => Uint8Array,
): TransactionWork<boolean> {
  const settings = yield* tx.get<{ plan: Plan; triggers: string }>(
    sql`SELECT plan, triggers FROM shops WHERE id = ${shop.id} AND removal_started_at IS NULL
      ${lockFor(db, "KEY SHARE")}`,
  );
  if (settings === undefined) return false;
  const toldAt = isOver ? sql`told_at` : sql`${now}`;
  const changed = yield* tx.run(
    sql`UPDATE alerts SET told = ${!isOver}, told_at = ${toldAt}
      WHERE shop_id = ${shop.id} AND cause = ${alert.cause} AND (well_at IS NOT NULL) = ${isOver} AND ${isDue(now)}`,
  );
  if (changed === 0) return false;
  const json = JSON.stringify({ ...alert, isOver, link } satisfies AlertNotice);
  if (channels.operator)
    yield* tx.run(
      sql`INSERT INTO alert_notices (shop_id, alert, created_at, next_attempt_at)
        VALUES (${shop.id}, ${json}, ${now}, ${now})`,
    );
  if (channels.email)
    yield* tx.run(
      sql`INSERT INTO alert_notices (shop_id, address, alert, created_at, next_attempt_at)
        SELECT shop_id, number, ${json}, ${now}, ${now} FROM alert_addresses
        WHERE shop_id = ${shop.id} AND confirmed_at IS NOT NULL AND removed_at IS NULL`,
    );
  const trigger = isOver ? undefined : failingTrigger(alert, link);
  const isOn = (JSON.parse(settings.triggers) as TriggerHandle[]).includes(ENDPOINT_FAILING);
  if (trigger === undefined || !isOn || connection === null || !hasAccess(settings.plan)) return true;
  yield* insertDelivery(
    shop.id,
    {
      id: timeOrderedId("whd_", now, random),
      kind: "trigger",
      topic: trigger.handle,
      isTest: false,
      body: triggerBody(trigger),
      secretVersion: 0,
    },
    now,
  );
  return true;
}

type StoredNotice = Omit<ClaimedNotice, "shop" | "notice" | "recipient"> & {
  shopId: number;
  domain: string;
  alert: string | null;
  address: string | null;
  sealed: Uint8Array | null;
};

function* claimNotice(
  now: number,
  nextAttemptAt: (attempts: number) => number,
): TransactionWork<StoredNotice | undefined> {
  const due = yield* tx.get<StoredNotice>(
    sql`SELECT alert_notices.number, alert_notices.shop_id AS "shopId", domain, alert, attempts,
        alert_notices.created_at AS "createdAt",
        (SELECT alert_addresses.address FROM alert_addresses WHERE number = alert_notices.address) AS address,
        (SELECT sealed FROM alert_addresses WHERE number = alert_notices.address) AS sealed
      FROM alert_notices JOIN shops ON shops.id = alert_notices.shop_id
      WHERE next_attempt_at <= ${now} AND removal_started_at IS NULL
      ORDER BY next_attempt_at, alert_notices.number LIMIT 1`,
  );
  if (due === undefined) return undefined;
  const claimed = yield* tx.run(
    sql`UPDATE alert_notices SET attempts = attempts + 1, next_attempt_at = ${nextAttemptAt(due.attempts)}
      WHERE number = ${due.number} AND attempts = ${due.attempts}`,
  );
  return claimed === 0 ? undefined : { ...due, attempts: due.attempts + 1 };
}

/** Begins or ends the alert of a connection. @param trouble null if the platform accepts the connection */
export function* keepConnectionAlert(shopId: number, trouble: string | null, now: number): TransactionWork<void> {
  if (trouble === null) {
    yield* tx.run(
      sql`UPDATE alerts SET well_at = ${now} WHERE shop_id = ${shopId} AND cause = 'connection' AND well_at IS NULL`,
    );
    return;
  }
  yield* tx.run(
    sql`INSERT INTO alerts (shop_id, cause, since, failures, last_at, error)
      SELECT id, 'connection', ${now}, 1, ${now}, ${trouble} FROM shops
      WHERE id = ${shopId} AND removal_started_at IS NULL
      ON CONFLICT (shop_id, cause) DO UPDATE SET
        since = CASE WHEN alerts.well_at IS NULL THEN alerts.since ELSE excluded.since END,
        last_at = excluded.last_at, error = excluded.error, well_at = NULL`,
  );
}
