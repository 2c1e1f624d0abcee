import { listPage } from "./connection.ts";
import type { Fields } from "./context.ts";
import type { CustomerRow } from "./rows.ts";
import type { PlatformShop } from "./shop.ts";
import type { AppSubscription } from "./shop-options.ts";
import { utc } from "./timestamps.ts";

const installation: Fields<PlatformShop> = {
  id: ({ number }) => `gid://shopify/AppInstallation/${number}`,
  accessScopes: ({ scopes }) => scopes.map((handle) => ({ handle, description: handle.replaceAll("_", " ") })),
  activeSubscriptions: ({ appSubscriptions }) => appSubscriptions.filter(({ status }) => status === "ACTIVE"),
  allSubscriptions: ({ appSubscriptions }, args) => listPage(appSubscriptions, args, ({ n }) => n),
};

const appSubscription: Fields<AppSubscription> = {
  id: ({ n }, _, { shop }) => `gid://shopify/AppSubscription/${shop.idOf(n)}`,
  createdAt: ({ createdAt }) => utc(createdAt),
  currentPeriodEnd: ({ createdAt }) => utc(createdAt + 30 * 86_400_000),
  test: () => false,
  trialDays: () => 0,
  returnUrl: (_, __, { shop }) => `https://${shop.domain}/admin/apps`,
  lineItems: ({ n, planHandle }, _, { shop }) => {
    const price = { amount: "10.0", currencyCode: "USD" };
    const pricingDetails = {
      __typename: "AppRecurringPricing",
      planHandle,
      interval: "EVERY_30_DAYS",
      price,
      discount: null,
    };
    return [{ id: `gid://shopify/AppSubscriptionLineItem/${shop.idOf(n)}?v=1&index=0`, plan: { pricingDetails } }];
  },
};

const shopFields: Fields<PlatformShop> = {
  id: ({ number }) => `gid://shopify/Shop/${number}`,
  myshopifyDomain: ({ domain }) => domain,
  currencyCode: ({ currency }) => currency,
  ianaTimezone: ({ timezone }) => timezone,
  email: ({ domain }) => `owner@${domain}`,
  plan: () => ({
    publicDisplayName: "Shopify Plus",
    displayName: "Shopify Plus",
    partnerDevelopment: false,
    shopifyPlus: true,
  }),
};

const customer: Fields<CustomerRow> = {
  id: (row, _, { shop }) => shop.gid(row),
  createdAt: ({ createdAt }) => utc(createdAt),
  updatedAt: ({ updatedAt }) => utc(updatedAt),
  displayName: ({ firstName, lastName, email }) => [firstName, lastName].filter(Boolean).join(" ") || (email ?? ""),
  defaultEmailAddress: (row) => (row.email === null ? null : row),
};

const emailAddress: Fields<CustomerRow> = {
  emailAddress: ({ email }) => email,
  marketingState: ({ marketing }) => marketing,
  marketingUpdatedAt: ({ marketingAt }) => utc(marketingAt),
  validFormat: () => true,
};

export const SHOP_FIELDS: Record<string, Fields<never>> = {
  AppInstallation: installation,
  AppSubscription: appSubscription,
  Shop: shopFields,
  Customer: customer,
  CustomerEmailAddress: emailAddress,
};
