import { createShopRemover } from "../actions/shop-removal.ts";
import { createMember, type Membership, soleMember } from "../cluster/membership.ts";
import { type Config, readSmtpServer } from "../config.ts";
import type { Resolve } from "../delivery/address.ts";
import { type AlertTeller, createAlertTeller } from "../delivery/alert-teller.ts";
import { createWebhookAttempt } from "../delivery/attempt.ts";
import { createConnector } from "../delivery/connector.ts";
import { createDeliverer } from "../delivery/deliverer.ts";
import { createMailer } from "../delivery/mailer.ts";
import { createSender, type Sender } from "../delivery/sender.ts";
import { alertTexts } from "../domain/deliveries/alert.ts";
import type { DeliveryKind } from "../domain/deliveries/delivery.ts";
import type { DescriptorReserve } from "../lib/descriptor-reserve.ts";
import type { Log } from "../lib/log.ts";
import { browsable, httpAddress } from "../lib/networks.ts";
import { createLoadGauge, type LoadGauge } from "../lib/reader-queue.ts";
import type { Sleep } from "../lib/waits.ts";
import { type CommitCounts, createRecordWriter, type RecordWriter } from "../mirror/record-writer.ts";
import { createInboxWriter } from "../shopify/inbox/inbox-writer.ts";
import { createInboxProcessor } from "../shopify/inbox/processor.ts";
import { openPlatform, type Platform } from "../shopify/open-platform.ts";
import { createFirstLoader } from "../shopify/sync/first-loader.ts";
import { createReconciler } from "../shopify/sync/reconciler.ts";
import { createWorkflowStarter } from "../shopify/workflow.ts";
import type { DueAlert } from "../store/port/alerts.ts";
import type { AttemptResult, Claim } from "../store/port/deliveries.ts";
import type { Store } from "../store/port/store.ts";

/** Clock, randomness, network and log. Tests pass fakes. */
export interface AppDependencies {
  /** Epoch milliseconds, for times that are stored or shown. This clock may be set forward or back. */
  now: () => number;
  /** Milliseconds of a clock that only goes forward, for caches, limits and pauses. */
  clock: () => number;
  random: (bytes: number) => Uint8Array;
  fetch: typeof fetch;
  resolve: Resolve;
  sleep: Sleep;
  log: Log;
}

/** The resources that most parts of the program use. */
export interface AppResources extends AppDependencies {
  config: Config;
  store: Store;
  reserve: DescriptorReserve;
}

/** Number of file descriptors that are reserved for DNS look-ups, the platform and files. */
export const SPARE_DESCRIPTORS = 32;

/** Counts the work for the metrics. */
interface WorkObserver {
  noteAttempt(kind: DeliveryKind, hasSucceeded: boolean, durationMs: number): void;
  noteCommit(records: number): void;
}

export type Work = ReturnType<typeof openWork>;

type MemberResources = AppResources & { membership: Membership; observer?: WorkObserver | undefined };

/** Creates the parts of the program that write or send data. The HTTP server is not one of them. */
export function openWork(resources: MemberResources) {
  const { config, store, membership, observer, now, clock, sleep, log } = resources;
  const { mirror, inbox, shops, connections, syncs } = store;
  const isShared = store.nodes !== null;
  const gauge = createLoadGauge(clock);
  const onCommit = ({ records, events }: CommitCounts) => {
    observer?.noteCommit(records);
    if (events > 0) sender.wake();
  };
  const recordWriter: RecordWriter = createRecordWriter(mirror, now, onCommit, isShared);
  const remover = createShopRemover({ shops, membership, sleep, log });
  const nodeWriter: RecordWriter = {
    ...recordWriter,
    submit: (submission) => recordWriter.submit({ ...submission, isNodeWork: true }),
  };
  const platform = openPlatform(config, store, nodeWriter, { ...resources, onRemovalBegun: () => remover.wake() });
  const sender: Sender = openSender(resources, platform, gauge);
  const teller = openAlertTeller(resources, () => sender.wake());
  const { client, synchronizer } = platform;
  const { handleWebhooks: handle } = platform;
  const { isSlow } = client;
  const processor = createInboxProcessor({ inbox, shops, handle, isSlow, membership, now, clock, sleep, log });
  const inboxWriter = createInboxWriter(inbox, now, () => processor.wake(), isShared);
  const { installations } = platform;
  const syncing = { ...resources, shops, connections, syncs, synchronizer, installations };
  const reconciler = createReconciler({ ...syncing, now: platform.now });
  const firstLoader = createFirstLoader(syncing);
  const wakeAll = () => {
    for (const each of [sender, processor, remover]) each.wake();
  };
  const works = { sender, processor, reconciler, firstLoader, remover, teller };
  return { gauge, membership, recordWriter, platform, inboxWriter, wakeAll, ...works };
}

/**
 * Returns the function `linkOf`, which makes the address of an alert's page. A shop that installed the app from the
 * platform sees the page in the platform's admin.
 */
function createAlertLinks({ platformClientId }: Config, baseOf: () => Promise<string>) {
  return async ({ shop, connection, ...alert }: DueAlert): Promise<string> => {
    const { path } = alertTexts(alert);
    if (connection === "refresh" && platformClientId !== null)
      return `https://${shop.domain}/admin/apps/${platformClientId}/app${path}`;
    return `${await baseOf()}/admin${path}`;
  };
}

export function openMembership({ store, clock, log }: AppResources, onGained: () => void): Membership {
  return store.nodes === null ? soleMember() : createMember({ nodes: store.nodes, clock, log, onGained });
}

function openSender(resources: MemberResources, { client }: Platform, gauge: LoadGauge): Sender {
  const { config, store, membership, observer, reserve, resolve, now, clock, sleep, log } = resources;
  const { deliveryPerShop: perShop, deliveryTimeoutMs: timeoutMs, retryWaitsMs: waitsMs } = config;
  const startWorkflow = createWorkflowStarter({ client, shops: store.shops, timeoutMs });
  const deliver = createDeliverer(
    { webhooks: store.webhooks, connect: createConnector({ reserve }), startWorkflow, now },
    { resolve, allow: config.egressAllow, timeoutMs },
  );
  const concurrency = concurrencyWithin(config.deliveryConcurrency, reserve.size);
  if (concurrency < config.deliveryConcurrency)
    log.warn("the limit of open files allows few deliveries at once: raise it", { concurrency });
  const attempt = (claim: Claim) => gauge.during(deliver(claim));
  const { deliveries } = store;
  const onRecorded = ({ claim: { kind }, outcome: { error }, duration }: AttemptResult) =>
    observer?.noteAttempt(kind, error === null, duration);
  return createSender(
    { deliveries, attempt, membership, now, clock, sleep, log, onRecorded },
    { concurrency, perShop, timeoutMs, waitsMs, isShared: store.nodes !== null },
  );
}

function openAlertTeller(resources: MemberResources, wakeSender: () => void): AlertTeller {
  const { config, store, reserve, resolve } = resources;
  const { publicUrl, host, port, smtpUrlFile } = config;
  const settings = { resolve, allow: config.egressAllow, timeoutMs: config.deliveryTimeoutMs };
  const baseOf = async () => publicUrl ?? browsable((await store.sessions.address()) ?? httpAddress(host, port));
  return createAlertTeller({
    ...resources,
    alerts: store.alerts,
    attempt: createWebhookAttempt(settings, createConnector({ reserve })),
    alertUrl: config.alertUrl,
    sendMail: smtpUrlFile === null ? null : createMailer(() => readSmtpServer(smtpUrlFile), baseOf),
    linkOf: createAlertLinks(config, baseOf),
    wakeSender,
  });
}

/**
 * Returns the maximum number of deliveries at once. Usually this is `wanted`. If `wanted` deliveries would leave too
 * few descriptors for other uses, the maximum is half of the reserved descriptors.
 */
function concurrencyWithin(wanted: number, reserved: number): number {
  return reserved < wanted + SPARE_DESCRIPTORS ? Math.max(1, Math.floor(reserved / 2)) : wanted;
}
