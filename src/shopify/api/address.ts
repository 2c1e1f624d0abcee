import type { Shop } from "../../domain/shop.ts";

/** The version of the platform's API that all requests use. The platform supports each version for a year. */
export const API_VERSION = "2026-07";

/** The id and domain of a shop, which a request needs. */
export type ShopAddress = Pick<Shop, "id" | "domain">;

/** Returns the addresses of a shop's API. @param baseUrl a URL in which `{shop}` stands for the domain */
export function apiUrls(baseUrl: string, domain: string): { graphql: string; tokens: string } {
  const root = baseUrl.replaceAll("{shop}", domain).replace(/\/+$/, "");
  return { graphql: `${root}/admin/api/${API_VERSION}/graphql.json`, tokens: `${root}/admin/oauth/access_token` };
}
