import { customerRow, type MarketingState } from "./rows.ts";
import { ShopRows } from "./shop-rows.ts";
import { consentBody, customerBody, deletedCustomerBody, mergeBody } from "./webhook-bodies.ts";

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
    const createdAt = this.now();
    const marketingAt = marketing === "not_subscribed" ? null : createdAt;
    const consent = { marketing: stateOf(marketing), marketingAt };
    const customer = this.add(customerRow({ n: this.reserve(1), email, firstName, lastName, createdAt, ...consent }));
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

  /** The customer's contracts stay, and then have no customer. */
  deleteCustomer(id: string): void {
    const customer = this.need("customer", id);
    this.change(customer, (row) => {
      row.deleted = true;
    });
    this.emit("customers/delete", deletedCustomerBody(this, customer));
  }

  /** Merges two customers without contracts. */
  mergeCustomers(keptId: string, goneId: string): void {
    const kept = this.need("customer", keptId);
    const gone = this.need("customer", goneId);
    this.change(gone, (row) => {
      row.deleted = true;
    });
    this.change(kept, () => undefined);
    this.emit("customers/merge", mergeBody(this, kept, gone));
  }
}

function stateOf(consent: Consent): MarketingState {
  return consent.toUpperCase() as Uppercase<Consent>;
}
