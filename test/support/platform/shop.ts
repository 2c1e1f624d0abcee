import { BillingChanges } from "./billing-changes.ts";
import { type BulkBehaviour, type BulkDependencies, BulkOperations } from "./bulk-operations.ts";
import type { CustomerRow, OrderRow } from "./rows.ts";
import { type Seeding, seededRows } from "./seed.ts";
import type { AppSubscriptionInput, ShopDependencies, ShopOptions } from "./shop-options.ts";
import { appSubscriptionBody, personBody, scopesBody, shopBody } from "./webhook-bodies.ts";

interface PlatformShopDependencies extends ShopDependencies {
  bulk: Pick<BulkDependencies, "refuse" | "unknown" | "files"> & {
    lines: (shop: PlatformShop, query: string) => ReturnType<BulkDependencies["lines"]>;
  };
}

/** A shop of the stand-in. Each method makes a change and sends the webhooks of the platform. Ids are gids. */
export class PlatformShop extends BillingChanges {
  readonly bulk: BulkOperations;

  constructor(domain: string, options: ShopOptions, { bulk, ...dependencies }: PlatformShopDependencies) {
    super(domain, options, dependencies);
    this.bulk = new BulkOperations({
      refuse: bulk.refuse,
      lines: (query) => bulk.lines(this, query),
      unknown: bulk.unknown,
      files: bulk.files,
      now: () => this.now(),
      newId: () => `gid://shopify/BulkOperation/${this.idOf(this.reserve(1))}`,
      emit: (topic, payload) => this.emit(topic, payload),
    });
    Object.assign(this.bulk.behaviour, options.bulk);
  }

  setBulk(behaviour: Partial<BulkBehaviour>): void {
    Object.assign(this.bulk.behaviour, behaviour);
  }

  /** Runs all waiting bulk operations to the end. Each sends its webhook. */
  finishBulkOperations = (): Promise<void> => this.bulk.finishAll();
  /** Lets all results of bulk operations expire. */
  expireBulkOperations = (): void => this.bulk.expireAll();

  /** The platform sends the webhook only for manual pricing. Tests pass `webhook: false` for other pricing. */
  setAppSubscription({ webhook = true, ...input }: AppSubscriptionInput & { webhook?: boolean }): void {
    let subscription = this.appSubscriptions.find(({ name }) => name === input.name);
    if (subscription === undefined) {
      subscription = this.newAppSubscription(input);
      this.appSubscriptions.push(subscription);
    }
    subscription.status = input.status;
    if (input.planHandle !== undefined) subscription.planHandle = input.planHandle;
    if (webhook) this.emit("app_subscriptions/update", appSubscriptionBody(this, subscription));
  }

  /** Grants these scopes from now on. */
  setScopes(scopes: readonly string[]): void {
    const previous = this.scopes;
    this.scopes = scopes;
    this.emit("app/scopes_update", scopesBody(this, previous));
  }

  setCurrency(code: string): void {
    this.currency = code;
    this.emit("shop/update", shopBody(this));
  }

  setRates(rates: Record<string, number>): void {
    this.rates = rates;
  }

  /** Sends no webhook. See `access`. */
  setAccess(access: PlatformShop["access"]): void {
    this.access = access;
  }

  uninstall(): void {
    this.tokens.revoke();
    this.installed = false;
    this.emit("app/uninstalled", shopBody(this));
  }

  /** The app is installed again: the platform grants tokens from now on. Sends no webhook. */
  install(): void {
    this.installed = true;
  }

  requestData(customerId: string): void {
    const customer = this.need("customer", customerId);
    const request = { data_request: { id: this.idOf(this.reserve(1)) } };
    this.emit(
      "customers/data_request",
      personBody(this, customer, "orders_requested", this.ordersOf(customer), request),
    );
  }

  /** Sends the webhook, and removes the personal data at the platform. */
  redactCustomer(customerId: string): void {
    const customer = this.need("customer", customerId);
    this.emit("customers/redact", personBody(this, customer, "orders_to_redact", this.ordersOf(customer)));
    this.change(customer, (row) => {
      row.email = null;
      row.firstName = null;
      row.lastName = null;
    });
  }

  redactShop(): void {
    this.emit("shop/redact", { shop_id: this.number, shop_domain: this.domain });
  }

  /** Fills the shop. Sends no webhooks. */
  seed(seeding: Seeding): void {
    const { currency, lastOrderNumber } = this;
    this.lastOrderNumber += seeding.contracts * (1 + (seeding.renewals ?? 0));
    const reserve = (count: number) => this.reserve(count);
    const nextRevision = () => this.nextRevision();
    this.addAll(seededRows(seeding, { now: this.now(), currency, lastOrderNumber, reserve, nextRevision }));
  }

  private ordersOf(customer: CustomerRow): OrderRow[] {
    return (this.inOrder("order", "ID")?.rows ?? []).filter(
      (row): row is OrderRow => row.kind === "order" && row.customer === customer,
    );
  }
}
