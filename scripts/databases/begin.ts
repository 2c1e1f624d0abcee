import type { StandIn } from "../../test/support/platform/stand-in.ts";
import { fieldValue } from "../../test/support/records.ts";
import type { Answers } from "../../test/support/stored-database.ts";
import type { OldProgram, ShiftedClock } from "./program.ts";
import { ALPHA, BETA, GAMMA, history } from "./shops.ts";

/** The endpoint of the webhooks. Its answer can be changed. */
export interface WebhookReceiver {
  url: string;
  answer: (topic: string) => Response | Promise<Response>;
}

export interface World {
  program: OldProgram;
  platform: StandIn;
  clock: ShiftedClock;
  receiver: WebhookReceiver;
}

export type Remembered = Pick<Answers, "shops" | "taken" | "sessionCookie" | "signInPath"> & { revokedKey: string };

/** Makes shops, connections, keys and endpoints, and imports records while `serve` does not run. */
export async function begin({ program, platform, receiver }: World): Promise<Remembered> {
  const alpha = platform.addShop(ALPHA, { currency: "EUR" });
  const beta = platform.addShop(BETA, { currency: "GBP" });
  alpha.seed({ contracts: 6, linesEach: 2, renewals: 2 });
  beta.seed({ contracts: 3, linesEach: 1, renewals: 1 });
  await program.run(["shop", "connect", ALPHA, "--client-credentials"]);
  await program.run(["shop", "connect", BETA, "--refresh-token-stdin"], beta.issuePair().refreshToken);
  platform.addShop(GAMMA);
  await program.run(["shop", "connect", GAMMA, "--client-credentials"]);
  const settings = ["--plan", "pro", "--triggers", "all", "--retry-days", "2,4,6", "--credit-title", "Guthaben"];
  await program.run(["shop", "set", ALPHA, ...settings]);
  await program.run(["shop", "set", BETA, "--plan", "free+addon"]);
  await program.run(["sync", ALPHA]);
  await program.run(["sync", ALPHA, "--since", "1h"]);
  await importHistory(program);
  await setUpStorefront(program);
  return await openAccess(program, receiver);
}

async function importHistory(program: OldProgram): Promise<void> {
  for (const [shop, count] of [
    [ALPHA, 24],
    [BETA, 9],
  ] as const) {
    await program.run(["import", "-", "--shop", shop], ndjson(history(count)));
  }
  // Older versions accepted U+0000. Later versions refuse it, but have to serve the rows that have it.
  const nul = { type: "customer", shopifyId: "gid://shopify/Customer/900", firstName: "nul\u0000name" };
  await program.run(["import", "-", "--shop", ALPHA], ndjson([nul])).catch(() => undefined);
}

/** Defines custom fields with values, and archives one of the fields. Sets a stylesheet. */
async function setUpStorefront(program: OldProgram): Promise<void> {
  await program.run(["field", "add", "gift_note", "--label", "Gift note", "--type", "text", "--shop", ALPHA]);
  await program.run(["field", "add", "boxes", "--label", "Boxes", "--type", "number", "--shop", ALPHA]);
  await program.run(
    ["import", "-", "--shop", ALPHA],
    ndjson([fieldValue(1, "gift_note", "Grüße"), fieldValue(1, "boxes", 2)]),
  );
  await program.run(["field", "archive", "boxes", "--shop", ALPHA]);
  await program.run(["style", "set", "-", "--shop", ALPHA], ".sds-widget { color: teal }");
}

/** Sets endpoints, and makes keys. */
async function openAccess(program: OldProgram, receiver: WebhookReceiver): Promise<Remembered> {
  await program.run(["webhook", "set", "--shop", ALPHA, "--url", receiver.url, "--all-topics"]);
  const topics = ["--topics", "order.failed,order.charged"];
  await program.run(["webhook", "set", "--shop", BETA, "--url", receiver.url, ...topics]);
  const create = async (shop: string, label: string) =>
    (await program.json<{ key: string }>(["key", "create", "--shop", shop, "--label", label])).key;
  const [warehouse, revokedKey, other] = [
    await create(ALPHA, "Warehouse"),
    await create(ALPHA, "Gone"),
    await create(BETA, "Žlutý kůň"),
  ];
  await program.run(["key", "revoke", revokedKey.slice(0, 15), "--shop", ALPHA]);
  await program.run(
    ["key", "import", "--shop", ALPHA, "--label", "Old CRM", "--legacy"],
    `cad_pk_${"0123456789abcdef".repeat(3)}`,
  );

  const secretOf = async (shop: string) =>
    (await program.json<{ secret: string }>(["intake", "secret", "--shop", shop])).secret;
  const shops = [
    { domain: ALPHA, key: warehouse, intakeSecret: await secretOf(ALPHA) },
    { domain: BETA, key: other, intakeSecret: await secretOf(BETA) },
  ];
  return { shops, taken: [], sessionCookie: "", signInPath: "", revokedKey };
}

export function ndjson(records: object[]): string {
  return records.map((record) => JSON.stringify(record)).join("\n");
}
