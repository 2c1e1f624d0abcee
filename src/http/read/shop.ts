import type { ShopStore } from "../../store/port/shops.ts";
import type { ShopAnswer } from "../answers.ts";
import { refusals } from "../refusals.ts";
import { queryOf, type RouteHandler } from "../routes.ts";
import { checkNoParameters, isStrict } from "./list-query.ts";
import type { ReadApi } from "./read-api.ts";

/** GET /api/v1/shop: answers with the shop that the key belongs to. */
export function createShopHandler(shops: Pick<ShopStore, "byId">, api: ReadApi): RouteHandler {
  return (request, context) =>
    api.answerFresh(request, context, async ({ shopId }) => {
      checkNoParameters(queryOf(request.url), isStrict(request));
      const shop = await shops.byId(shopId);
      // The removal of the shop began after the key was found.
      if (shop === undefined) throw refusals.unknownKey();
      const { domain, plan, currency } = shop;
      return JSON.stringify({ domain, plan, currency } satisfies ShopAnswer);
    });
}
