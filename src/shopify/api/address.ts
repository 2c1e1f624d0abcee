import { API_VERSION } from "./operations.ts";

/** Where a shop's platform is. @param base with `{shop}` in the place of the domain */
export function addressOf(base: string, domain: string): { graphql: string; tokens: string } {
  const root = base.replaceAll("{shop}", domain).replace(/\/+$/, "");
  return { graphql: `${root}/admin/api/${API_VERSION}/graphql.json`, tokens: `${root}/admin/oauth/access_token` };
}
