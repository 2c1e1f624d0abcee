import { expect, test } from "bun:test";
import { afterTest } from "../support/cleanup.ts";
import { platformEnv, SECRET } from "../support/connected.ts";
import { eventually } from "../support/eventually.ts";
import { idTokenClaims, signIdToken } from "../support/platform/id-token.ts";
import { StandIn } from "../support/platform/stand-in.ts";
import { Program } from "../support/program.ts";

const SHOP = "alpha.myshopify.com";

/** A shop of the platform. The program does not know the shop yet. */
async function newShop() {
  const platform = await StandIn.start({ clientSecret: SECRET });
  afterTest(() => platform.stop());
  const remote = platform.addShop(SHOP);
  const program = new Program(undefined, platformEnv(platform));
  return { platform, remote, program };
}

/** A fetch of the page, as App Bridge sends it. */
function view(url: string, path = "/app/keys"): Promise<Response> {
  const token = signIdToken(idTokenClaims(SHOP, "client", Date.now()), { secret: SECRET });
  const headers = { Authorization: `Bearer ${token}`, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty" };
  return fetch(`${url}${path}`, { headers, redirect: "manual" });
}

const titleOf = async (response: Response) => /<h1[^>]*>([^<]*)</.exec(await response.text())?.[1];

test("a shop whose exchange was cut off by a kill has nothing stored, and is connected by the next view", async () => {
  const { platform, program } = await newShop();
  const { promise, resolve } = Promise.withResolvers<void>();
  platform.fault = ({ operation }) => (operation === "exchange" ? { until: promise } : undefined);
  const first = await program.serve();
  const cutOff = view(first.url).catch(() => undefined);
  await eventually(() => platform.exchanges === 1);
  await first.stop("SIGKILL");
  resolve();
  await cutOff;
  expect(await program.json<object[]>(["shop", "list"])).toEqual([]);
  platform.fault = () => undefined;
  const second = await program.serve();
  // On PostgreSQL, other nodes may share the database. So the view waits until the reservation of the killed process
  // expires.
  expect(await titleOf(await view(second.url))).toBe("API keys");
  expect(platform.exchanges).toBe(2);
  expect(await program.json<object[]>(["shop", "list"])).toMatchObject([{ domain: SHOP }]);
});

test("a shop is connected and loaded by its first view, without a command", async () => {
  const { remote, program } = await newShop();
  remote.seed({ contracts: 30 });
  const server = await program.serve();
  expect(await titleOf(await view(server.url))).toBe("API keys");
  await eventually(async () => {
    const [shop] = await program.json<{ domain: string }[]>(["shop", "list"]);
    return shop?.domain === SHOP && (await program.count("subscriptions", 1)) === 30;
  });
});

test("a view after an uninstallation is asked for another ID token, and works again when the app is back", async () => {
  const { platform, remote, program } = await newShop();
  const server = await program.serve();
  platform.webhooksTo = `${server.url}/platform/webhooks`;
  expect((await view(server.url)).status).toBe(200);
  remote.uninstall();
  await platform.settled();
  await eventually(async () => (await view(server.url)).status === 401);
  const refused = await view(server.url);
  expect(refused.headers.get("x-shopify-retry-invalid-session-request")).toBe("1");
  expect(await program.json<object[]>(["shop", "list"])).toMatchObject([{ domain: SHOP }]);
  remote.install();
  expect((await view(server.url)).status).toBe(200);
  expect(platform.undelivered).toEqual([]);
});
