import type { CustomerRow, MarketingState } from "./rows.ts";
import { ShopRows } from "./shop-rows.ts";
import { consentBody, customerBody, deletedCustomerBody } from "./webhook-bodies.ts";

export interface CustomerInput {
  email?: string | null;
  firstName?: string | null;
  lastName?: string | null;
}

export type Consent = "subscribed" | "unsubscribed" | "not_subscribed" | "pending";

/** Changes of customers. */
export class CustomerChanges extends ShopRows {
  createCustomer({
    email = null,
    firstName = null,
    lastName = null,
    marketing = "not_subscribed",
  }: CustomerInput & { marketing?: Consent } = {}): string {
    const now = this.now();
    const customer = this.add<CustomerRow>({
      kind: "customer",
      n: this.reserve(1),
      email,
      firstName,
      lastName,
      createdAt: now,
      updatedAt: now,
      marketing: stateOf(marketing),
      marketingAt: marketing === "not_subscribed" ? null : now,
      deleted: false,
    });
    this.emit("customers/create", customerBody(this, customer));
    return this.gid(customer);
  }

  updateCustomer(id: string, input: CustomerInput): void {
    const customer = this.need("customer", id);
    this.change(customer, (row) => {
      if (input.email !== undefined) row.email = input.email;
      if (input.firstName !== undefined) row.firstName = input.firstName;
      if (input.lastName !== undefined) row.lastName = input.lastName;
    });
    this.emit("customers/update", customerBody(this, customer));
  }

  setConsent(id: string, consent: Consent): void {
    const customer = this.need("customer", id);
    this.change(customer, (row) => {
      row.marketing = stateOf(consent);
      row.marketingAt = this.now();
    });
    this.emit("customers_email_marketing_consent/update", consentBody(this, customer));
  }

  /** The contracts stay without a customer. */
  deleteCustomer(id: string): void {
    const customer = this.need("customer", id);
    this.change(customer, (row) => {
      row.deleted = true;
    });
    this.emit("customers/delete", deletedCustomerBody(this, customer));
  }
}

function stateOf(consent: Consent): MarketingState {
  return consent.toUpperCase() as Uppercase<Consent>;
}
