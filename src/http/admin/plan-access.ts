import { SdsError } from "../../domain/error.ts";
import { hasAccess, type Shop } from "../../domain/shop.ts";

/** Disabled fields are for the eye: what the plan has no access to is refused here. @throws SdsError `plan_required` */
export function requireAccess(shop: Shop): void {
  if (!hasAccess(shop.plan))
    throw new SdsError(
      "plan_required",
      "This shop's plan doesn't include it. It comes with the Pro plan, and with the Free plan through the API and webhooks add-on.",
    );
}
