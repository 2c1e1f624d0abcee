import { missingScopes } from "../../domain/platform/connection.ts";
import { counted } from "../../lib/text.ts";
import type { Checkup, FaultyShops } from "../../store/port/checkup.ts";
import { type DataCheck, type Finding, failed, type Patient, passed } from "./check.ts";

/** A shop is reported if its last reconciliation is older than this. Shops should be reconciled every hour. */
const RECONCILED_WITHIN_MS = 3 * 3_600_000;

export const SHOP_CHECKS: readonly DataCheck[] = [
  { name: "connections", run: checkConnections },
  { name: "access tokens", run: checkTokens },
  { name: "scopes", run: checkScopes },
  { name: "mirror", run: checkMirror },
  { name: "moves", run: checkMoves },
];

async function checkConnections({ shops }: Checkup): Promise<Finding> {
  const refused = await shops.refused();
  if (refused.count === 0) return passed("the platform accepts every connected shop");
  return failed(
    `${namesOf(refused)}: ${refused.shops[0]?.reason}`,
    "do what this message says, for each shop that `sds status` lists",
  );
}

async function checkTokens({ shops }: Checkup, { now }: Patient): Promise<Finding> {
  const expired = await shops.expired(now());
  if (expired.count === 0) return passed("no access token has expired");
  return failed(
    `the access token of ${namesOf(expired)} has expired, and cannot be renewed`,
    "connect each of these shops again with `sds shop connect`, or open the app in the shop's admin",
  );
}

async function checkScopes({ shops }: Checkup): Promise<Finding> {
  const lacking = (await shops.grantedScopes())
    .map(({ scopes, ...group }) => ({ ...group, missing: missingScopes(scopes) }))
    .filter(({ missing }) => missing.length > 0);
  const [first] = lacking;
  if (first === undefined) return passed("every connected shop grants what sds needs");
  const count = lacking.reduce((sum, group) => sum + group.count, 0);
  const missing = [...new Set(lacking.flatMap((group) => group.missing))];
  return failed(
    `${namesOf({ count, shops: [{ domain: first.domain, reason: null }] })} without ${missing.join(", ")}`,
    "deploy the files of `sds platform files`, and let each shop accept the app's permissions again",
  );
}

async function checkMirror({ shops }: Checkup, { now }: Patient): Promise<Finding> {
  const late = await shops.unreconciled(now() - RECONCILED_WITHIN_MS, now());
  if (late.count === 0) return passed("every connected shop was reconciled in the last three hours");
  return failed(
    `${namesOf(late)}: not reconciled for three hours`,
    "start `sds serve`, look for errors in its log, or run `sds sync` for the shop",
  );
}

async function checkMoves({ shops }: Checkup): Promise<Finding> {
  const moving = await shops.moving();
  const [first] = moving.shops;
  if (first === undefined) return passed("no shop is on its way to another database");
  const states: Record<string, string> = {
    arriving: "is not served here yet",
    leaving: "is served here",
    stopped: "takes nothing in and sends nothing",
  };
  return failed(
    `a move of ${namesOf(moving)} has not ended: ${first.domain} ${states[first.reason ?? ""]}`,
    "wait for its `sds shop move`, run that command again where it was run, or add --cancel to it; if the other " +
      "database is lost for good: `sds shop move DOMAIN --cancel-lost`",
  );
}

/** Names up to three shops, and says how many there are. */
function namesOf({ count, shops }: FaultyShops): string {
  const names = shops.map(({ domain }) => domain).join(", ");
  return count > shops.length ? `${counted(count, "shop", "shops")}, such as ${names}` : names;
}
