import type { Membership } from "../cluster/membership.ts";
import { operatorText } from "../domain/deliveries/alert.ts";
import type { Log } from "../lib/log.ts";
import { createTurnLoop } from "../lib/turn-loop.ts";
import type { Sleep } from "../lib/waits.ts";
import type { AlertStore, ClaimedNotice, DueAlert } from "../store/port/alerts.ts";
import { failureFields } from "../store/port/store-error.ts";
import type { WebhookAttempt } from "./attempt.ts";

/** Sends an e-mail. @returns the error, which contains no address and no secret; null if the e-mail was sent */
type SendMail = (claimed: ClaimedNotice) => Promise<string | null>;

interface TellerDependencies {
  alerts: AlertStore;
  membership: Pick<Membership, "isLeader">;
  attempt: WebhookAttempt;
  /** The value of SDS_ALERT_URL, a secret; null if the operator wants no posts. */
  alertUrl: string | null;
  /** null if no e-mails can be sent. */
  sendMail: SendMail | null;
  /** Returns the address of the page that shows an alert. */
  linkOf: (alert: DueAlert) => Promise<string>;
  /** Wakes the sender of workflow triggers. */
  wakeSender: () => void;
  now: () => number;
  sleep: Sleep;
  log: Log;
}

/** Tells people of alerts while `serve` runs. */
export interface AlertTeller {
  /** Requests a turn. Called every few seconds. */
  wake(): void;
  /** Waits for the notice that is being sent, and sends no other notice. May be called twice. */
  stop(): Promise<void>;
}

const FIRST_WAIT_MS = 60_000;
const LONGEST_WAIT_MS = 4 * 3_600_000;
/** A notice that keeps failing is dropped after a day, because its text would be out of date. */
const GIVEN_UP_AFTER_MS = 86_400_000;

/**
 * Queues notices for due alerts, and sends queued notices. Only the leader does this, for all shops. Queued notices
 * survive a kill of the process. Each notice is claimed before it is sent, so two nodes never send the same notice.
 * After a successful request, the notice is removed. If the removal fails, for example because of a kill, the notice
 * is sent again.
 */
export function createAlertTeller(dependencies: TellerDependencies): AlertTeller {
  const { alerts, membership, alertUrl, sendMail, linkOf, wakeSender, now, sleep, log } = dependencies;
  const loop = createTurnLoop({
    turn,
    sleep,
    onFailure: (thrown) => log.error("cannot tell of alerts; the next turn tries again", failureFields(thrown)),
  });
  const channels = { operator: alertUrl !== null, email: sendMail !== null };

  async function turn(): Promise<void> {
    if (!membership.isLeader || loop.stopping) return;
    for (const alert of await alerts.due(now())) {
      if (!(await alerts.tell(alert, channels, await linkOf(alert), now()))) continue;
      const { shop, cause, host, error, isOver } = alert;
      if (isOver) log.info("an alert is over", { shop: shop.domain, cause });
      else log.warn("an alert began", { shop: shop.domain, cause, host, error });
      wakeSender();
    }
    while (!loop.stopping && membership.isLeader) {
      const claimed = await alerts.claimNotice(now(), (attempts) => now() + waitAfter(attempts));
      if (claimed === undefined) return;
      await send(claimed);
    }
  }

  async function send(claimed: ClaimedNotice): Promise<void> {
    const { number, shop, createdAt } = claimed;
    const what = claimed.recipient === null ? "post" : "e-mail";
    const error = await (claimed.recipient === null ? post(claimed) : mail(claimed));
    const isGivenUp = error !== null && Math.abs(now() - createdAt) >= GIVEN_UP_AFTER_MS;
    if (error !== null) {
      const message = isGivenUp ? `an alert's ${what} was given up` : `an alert's ${what} failed, and is repeated`;
      log.warn(message, { shop: shop.domain, error });
    }
    if (error === null || isGivenUp) await alerts.removeNotice(number);
  }

  /** Posts a notice to the operator. Drops the notice if SDS_ALERT_URL is no longer set. */
  async function post({ shop, notice }: ClaimedNotice): Promise<string | null> {
    if (alertUrl === null || notice === null) return null;
    const text = `${operatorText(shop.domain, notice.isOver, notice)}\n${notice.link}`;
    const headers = { "Content-Type": "application/json", "User-Agent": "sds" };
    const body = new TextEncoder().encode(JSON.stringify({ text }));
    return (await dependencies.attempt({ url: alertUrl, headers, body })).error;
  }

  async function mail(claimed: ClaimedNotice): Promise<string | null> {
    return sendMail === null ? null : sendMail(claimed);
  }

  return { wake: loop.wake, stop: loop.stop };
}

/** Returns the wait after an attempt. It doubles each time, up to four hours. @param attempts earlier attempts */
function waitAfter(attempts: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** attempts, LONGEST_WAIT_MS);
}
