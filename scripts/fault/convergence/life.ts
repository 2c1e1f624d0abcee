import type { Shop } from "../../../src/domain/shop.ts";
import { createLog } from "../../../src/lib/log.ts";
import { createRecordWriter } from "../../../src/mirror/record-writer.ts";
import type { Synchronizer } from "../../../src/shopify/sync/synchronizer.ts";
import { cancelUninstalled } from "../../../src/shopify/sync/uninstalled.ts";
import { type ConnectedShop, connected } from "../../../test/support/connected.ts";
import { eventually } from "../../../test/support/eventually.ts";
import type { Fault } from "../../../test/support/platform/faults.ts";
import type { Webhook } from "../../../test/support/platform/webhook.ts";
import { createRandom, type Random } from "../fuzzing/random.ts";
import { type ChangingShop, changeOnce, setRates, signUp, Unlikely } from "./changes.ts";
import { type DeadObject, touch, wrongItems } from "./dead-objects.ts";
import { type Lived, wrongEvents } from "./events.ts";
import { differences, States, type Unchecked } from "./mirror.ts";
import type { Switch } from "./switches.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LONGEST_STEP_S = 9;
const FIRST_CONTRACTS = 15;
/** Maximum number of times that the clock moves to the next due inbox item at the end of a life. */
const MOST_WAITS = 200;

/** A shop of the stand-in and its mirror, for some minutes or hours of the platform's time. */
export class Life {
  readonly random: Random;
  /** Probabilities that a webhook is lost, sent twice, or late. */
  readonly fates = { dropped: 0, doubled: 0, late: 0 };
  restarts = 0;
  /** The shop's domain in the mirror, if the platform has another domain. */
  oldDomain: string | undefined;
  mustLoad = false;
  /** Since when the platform has refused customers or orders. */
  unseenSince: number | undefined;
  /** Objects with a broken field, and the subjects of their inbox items. */
  readonly broken = new Set<string>();
  readonly dead: DeadObject[] = [];
  readonly lived: Lived & { firstContracts: Set<string>; cancellations: Map<string, number> };
  readonly findings: string[] = [];
  readonly counts = { steps: 0, webhooks: 0, restarts: 0 };
  private readonly all: ConnectedShop;
  private readonly shop: ChangingShop;
  private readonly states = new States();
  private readonly switches: readonly Switch[];
  /** Webhooks under way, with the times of their arrival. */
  private underWay: { at: number; webhook: Webhook }[] = [];
  private reconciledAt = 0;
  private endAt = 0;

  static async begin(seed: number, switches: readonly Switch[]): Promise<Life> {
    const all = await connected();
    const life = new Life(all, seed, switches);
    await life.load(false);
    return life;
  }

  private constructor(all: ConnectedShop, seed: number, switches: readonly Switch[]) {
    this.all = all;
    this.random = createRandom(seed);
    this.switches = switches;
    const { remote, random, now, broken } = this;
    const cancellations = new Map<string, number>();
    this.shop = { remote, random, now, cancellations, broken, late: new Set(), changedOrders: new Map() };
    setRates(this.shop);
    remote.seed({ contracts: 5, renewals: 2, linesEach: 2 });
    remote.createCustomer({ email: "first@example.com" });
    while (remote.ids("contract").length < FIRST_CONTRACTS) {
      signUp(this.shop);
      all.test.clock.ms += 1_000;
    }
    remote.outgoing.length = 0;
    const ids = (kind: "contract" | "attempt") => new Set(remote.ids(kind));
    const first = { firstContracts: ids("contract"), firstAttempts: ids("attempt") };
    this.lived = { ...first, cancellations, wasAway: false, lacksApproval: false };
    this.states.note(all);
  }

  get platform() {
    return this.all.platform;
  }
  get remote() {
    return this.all.remote;
  }
  get logged(): readonly string[] {
    return this.all.test.logged;
  }
  now = (): number => this.all.test.clock.ms;

  /** Makes requests fail at random. */
  failRequests(part: number, faults: readonly Fault[]): void {
    const { platform, random } = this;
    const { fault: before } = platform;
    platform.fault = (info) => (random.chance(part) ? random.pick(faults) : before(info));
  }

  /** Lives for some minutes of the platform's time. @returns what went wrong */
  async run(minutes: number): Promise<string[]> {
    await this.all.queueAllEvents();
    for (const each of this.switches) each.begin?.(this);
    this.endAt = this.now() + minutes * MINUTE_MS;
    while (this.now() < this.endAt && this.findings.length === 0) await this.step();
    await this.calm();
    await this.check();
    return this.findings;
  }

  private async step(): Promise<void> {
    const { random, all, counts } = this;
    const { test } = all;
    counts.steps += 1;
    test.clock.ms += 1_000 * (1 + random.below(LONGEST_STEP_S));
    for (const each of this.switches) await each.step?.(this);
    if (random.chance(0.6)) this.change();
    this.states.note(all);
    this.post();
    await this.deliver();
    await this.synchronize();
    if (random.chance(this.restarts)) await this.restart();
    test.app.processor.wake();
    if (random.chance(0.8)) await this.idle();
    if (this.now() >= this.reconciledAt + MINUTE_MS) await this.reconcile();
    if (counts.steps % 10 === 0) this.findings.push(...(await this.states.unknown(all)));
  }

  private change(): void {
    try {
      changeOnce(this.shop);
    } catch (thrown) {
      if (!(thrown instanceof Unlikely)) throw thrown;
    }
  }

  /** Takes the platform's new webhooks. Loses some, doubles some, and plans when each arrives. */
  private post(): void {
    const { random, fates, remote } = this;
    for (const webhook of remote.outgoing.splice(0)) {
      const isUninstallation = webhook.topic === "app/uninstalled";
      // Without the app, there is only the webhook of the uninstallation. It is never lost: the platform repeats it.
      if (!isUninstallation && (!remote.installed || random.chance(fates.dropped))) continue;
      const lateMs = random.chance(fates.late) ? random.below(10 * MINUTE_MS) : random.below(3_000);
      this.underWay.push({ at: this.now() + lateMs, webhook });
      if (random.chance(fates.doubled)) this.underWay.push({ at: this.now() + random.below(2 * MINUTE_MS), webhook });
    }
  }

  private async deliver(): Promise<void> {
    const due = this.underWay.filter(({ at }) => at <= this.now()).toSorted((a, b) => a.at - b.at);
    this.underWay = this.underWay.filter(({ at }) => at > this.now());
    for (const { webhook } of due) {
      const { status } = await this.all.send(webhook);
      if (status !== 200) this.findings.push(`the webhook ${webhook.topic} was answered with ${status}`);
      this.counts.webhooks += 1;
    }
  }

  private async restart(): Promise<void> {
    this.counts.restarts += 1;
    await this.all.test.restart();
  }

  private async idle(): Promise<void> {
    await eventually(() => !this.all.test.app.processor.working);
  }

  /** Does the work of those jobs of `serve` that read the platform. */
  private async reconcile(): Promise<void> {
    const { app, clock } = this.all.test;
    this.reconciledAt = this.now();
    const { store } = app;
    const log = createLog("error", { write: () => true }, clock.now);
    await cancelUninstalled({
      ...store,
      recordWriter: createRecordWriter(store.mirror, clock.now),
      now: clock.now,
      log,
    });
    await app.firstLoader.runOnce();
    await app.reconciler.runOnce();
  }

  /** Runs `sds sync` after an installation, and `sds sync --since` after an approval, as the operator does. */
  private async synchronize(): Promise<void> {
    if (this.mustLoad) this.mustLoad = !(await this.load(true));
    const since = this.unseenSince;
    if (since === undefined || this.remote.approvedLevel < 2) return;
    const from = since - 2 * HOUR_MS;
    if (await this.withShop((shop, { reconcile }) => reconcile(shop, from))) this.unseenSince = undefined;
  }

  private load(events: boolean): Promise<boolean> {
    return this.withShop((shop, { load }) => load(shop, { events }));
  }

  /** @returns whether the work was possible and ended without an error */
  private async withShop(work: (shop: Shop, synchronizer: Synchronizer) => Promise<unknown>): Promise<boolean> {
    const { store, platform } = this.all.test.app;
    const shop = await store.shops.byId(this.all.shop.shop.id);
    if (shop === undefined || (await store.connections.find(shop.id)) === undefined) return false;
    return work(shop, platform.synchronizer).then(
      () => true,
      () => false,
    );
  }

  /** Gives the mirror the shop's new domain, as the operator does. */
  async renameHere(): Promise<void> {
    if (this.oldDomain === undefined) return;
    await this.all.test.app.store.shops.rename(this.oldDomain, this.remote.domain);
    this.oldDomain = undefined;
  }

  /**
   * Notes that the mirror cancels all contracts. The platform also cancels them, unless the app was installed again in
   * time.
   */
  cancelAll(isInTime: boolean): void {
    this.states.noteCancellations();
    if (isInTime) return;
    for (const gid of this.remote.ids("contract")) {
      const { status } = this.remote.find("contract", gid) ?? {};
      if (status === "CANCELLED" || status === "EXPIRED") continue;
      this.lived.cancellations.set(gid, (this.lived.cancellations.get(gid) ?? 0) + 1);
    }
    this.remote.cancelAll();
  }

  /** Lets time pass. Meanwhile, only `act` happens. */
  async sleep(ms: number, act: () => void): Promise<void> {
    await this.deliver();
    await this.idle();
    this.all.test.clock.ms += ms;
    this.endAt += ms;
    act();
    this.all.test.app.processor.wake();
    await this.idle();
    await this.reconcile();
  }

  /** Installs the app again, and connects the shop. Some operators also load it. */
  async install(): Promise<void> {
    await this.renameHere();
    this.remote.install();
    const access = this.remote.access;
    this.remote.setAccess("open");
    const { fault } = this.platform;
    this.platform.fault = () => undefined;
    await this.all.test.app.platform.connect(this.remote.domain, { kind: "client_credentials" });
    this.platform.fault = fault;
    this.remote.setAccess(access);
    this.mustLoad = this.random.chance(0.5);
  }

  /** Ends all faults. Drops or delivers all webhooks. Then reconciles twice, and retries all waiting inbox items. */
  private async calm(): Promise<void> {
    const { all } = this;
    for (const each of this.switches) await each.end?.(this);
    this.platform.fault = () => undefined;
    all.test.clock.ms += 1_000;
    for (const { gid } of this.dead) touch(this.remote, gid);
    this.states.note(all);
    all.remote.outgoing.length = 0;
    if (this.random.chance(0.5)) this.underWay = [];
    all.test.clock.ms += 10 * MINUTE_MS;
    await this.deliver();
    await this.synchronize();
    if (this.mustLoad || this.unseenSince !== undefined) this.findings.push("the last load failed");
    for (let run = 0; run < 2; run += 1) {
      all.test.clock.ms += HOUR_MS + MINUTE_MS;
      const logged = all.test.logged.length;
      await this.reconcile();
      const failed = all.test.logged.slice(logged).filter((entry) => entry.includes("cannot reconcile"));
      this.findings.push(...failed);
      await this.drain();
    }
  }

  /** Waits until the inbox has only items of objects that never answer. */
  private async drain(): Promise<void> {
    const dead = new Set(this.dead.flatMap(({ subjects }) => subjects));
    for (let wait = 0; wait < MOST_WAITS; wait += 1) {
      this.all.test.app.processor.wake();
      await this.idle();
      const items = (await this.all.inbox()).filter(({ subject }) => !dead.has(subject));
      const times = items.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []);
      if (times.length === 0) return;
      this.all.test.clock.ms = Math.max(this.now() + 1_000, Math.min(...times));
    }
  }

  private async check(): Promise<void> {
    const { all, findings } = this;
    const unchecked: Unchecked = new Set(this.dead.flatMap((each) => each.unchecked));
    findings.push(...(await differences(all, unchecked)), ...(await this.states.unknown(all)));
    findings.push(...wrongEvents(all, this.lived, unchecked));
    findings.push(...(await wrongItems(all, this.dead)));
    findings.push(...all.platform.invalid.splice(0));
  }
}
