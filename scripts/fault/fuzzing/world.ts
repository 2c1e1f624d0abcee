import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { cancelFlow, customer, gid, order, reward, subscription } from "../../../test/support/records.ts";
import type { CompiledProgram } from "../program.ts";

export const PLATFORM_SECRET = "the-app-client-secret";
const ROWS = 120;

/** A shop. All its gids begin with the same five digits, so its rows are recognised in any answer. */
export interface FuzzedShop {
  domain: string;
  digits: string;
  plan: "pro" | "free";
  key: string;
  intakeSecret: string;
  /** The session cookie of a signed-in merchant. */
  cookie: string;
  csrf: string;
  /** Ids, gids and cursors that the API returned at the start. */
  known: { ids: string[]; gids: string[]; cursors: string[]; deliveries: string[] };
}

export interface World {
  shops: FuzzedShop[];
  /** Texts that must not be in a log line or in another shop's answer. */
  secrets: string[];
}

/** Returns the number in the shop's n-th gid. */
export function numberOf(digits: string, n: number): string {
  return digits + String(n).padStart(5, "0");
}

export function platformEnv(folder: string): Record<string, string> {
  const file = join(folder, "client-secret");
  writeFileSync(file, PLATFORM_SECRET);
  return { SDS_PLATFORM_SECRET_FILE: file, SDS_PLATFORM_CLIENT_ID: "fuzz", SDS_EGRESS_ALLOW: "127.0.0.0/8" };
}

/** Records about one customer of a shop. */
export function recordsAbout(digits: string, n: number): object[] {
  const number = numberOf(digits, n);
  const contract = { subscription: gid.contract(number) };
  return [
    { ...customer(1), shopifyId: gid.customer(number), email: `${number}@example.com`, firstName: `Ada ${digits}` },
    { ...subscription(1), shopifyId: gid.contract(number), customer: gid.customer(number) },
    { ...order(1, 1), ...contract, shopifyId: gid.order(number) },
    reward(`reward-${number}`, { customer: gid.customer(number) }),
    cancelFlow(`flow-${number}`, contract),
  ];
}

/** Adds shops with rows, keys and an endpoint. */
export async function addShops(program: CompiledProgram, endpoint: string): Promise<FuzzedShop[]> {
  const shops: FuzzedShop[] = [];
  const plans = [
    ["alpha", "pro", "11111"],
    ["beta", "pro", "22222"],
    ["gamma", "free", "33333"],
  ] as const;
  for (const [name, plan, digits] of plans) {
    const domain = `${name}.myshopify.com`;
    const of = ["--shop", domain];
    await program.run(["shop", "add", domain]);
    const key = (await program.run(["key", "create", "--label", "fuzz", ...of])).trim();
    const intakeSecret = (await program.run(["intake", "secret", ...of])).trim();
    await program.run(["webhook", "set", "--url", endpoint, "--all-topics", ...of]);
    const records = Array.from({ length: ROWS }, (_, n) => recordsAbout(digits, n)).flat();
    await program.run(["import", "-", "--events", ...of], records.map((record) => JSON.stringify(record)).join("\n"));
    const known = { ids: [], gids: [], cursors: [], deliveries: [] };
    shops.push({ domain, digits, plan, key, intakeSecret, cookie: "", csrf: "", known });
    if (plan === "free") await program.run(["shop", "set", domain, "--plan", plan]);
  }
  return shops;
}

/** Signs in to each shop's settings page. Collects secrets, and the ids and cursors that the API returns. */
export async function signIn(program: CompiledProgram, url: string, shops: FuzzedShop[]): Promise<World> {
  const secrets = [PLATFORM_SECRET];
  for (const shop of shops) {
    const link = JSON.parse(await program.run(["admin", "link", "--json", "--shop", shop.domain])).url as string;
    const token = new URL(link).searchParams.get("token") ?? "";
    const body = new URLSearchParams({ token });
    const signedIn = await fetch(`${url}/admin/sign-in`, { method: "POST", body, redirect: "manual" });
    shop.cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
    const page = await (await fetch(`${url}/admin/keys`, { headers: { Cookie: shop.cookie } })).text();
    shop.csrf = /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? "";
    if (shop.csrf === "") throw new Error("the sign-in did not work");
    const log = JSON.parse(await program.run(["delivery", "list", "--json", "--shop", shop.domain]));
    shop.known.deliveries.push(...(log as { id: string }[]).map(({ id }) => id));
    const signing = (await program.run(["webhook", "secret", "--shop", shop.domain])).trim();
    secrets.push(shop.key, shop.intakeSecret, shop.cookie.slice("sds_session=".length), shop.csrf, signing, token);
    if (shop.plan === "pro") await readAll(url, shop);
  }
  return { shops, secrets };
}

async function readAll(url: string, { key, known }: FuzzedShop): Promise<void> {
  for (const resource of ["subscriptions", "customers", "orders"]) {
    const headers = { Authorization: `Bearer ${key}` };
    const answer = await fetch(`${url}/api/v1/${resource}?limit=50`, { headers });
    const { data, page } = (await answer.json()) as {
      data: { id: string; shopifyId: string }[];
      page: { nextCursor: string };
    };
    known.ids.push(...data.map(({ id }) => id));
    known.gids.push(...data.map(({ shopifyId }) => shopifyId));
    known.cursors.push(page.nextCursor);
    const checkpoint = answer.headers.get("x-checkpoint");
    if (checkpoint !== null) known.cursors.push(checkpoint);
  }
}
