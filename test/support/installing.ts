import { spyOn } from "bun:test";
import type { IdToken } from "../../src/shopify/install/id-token.ts";
import type { Opening } from "../../src/shopify/install/installer.ts";
import { START, type TestApp, testApp } from "./app.ts";
import { afterTest } from "./cleanup.ts";
import { platformEnv, SECRET } from "./connected.ts";
import { type IdTokenClaims, idTokenClaims, signIdToken } from "./platform/id-token.ts";
import type { PlatformShop } from "./platform/shop.ts";
import { StandIn } from "./platform/stand-in.ts";

export const NEW_SHOP = "new.myshopify.com";
/** The time for which a page view waits until its shop is connected. */
const VIEW_WAIT_MS = 5_000;

/** The program and the platform, with a shop at the platform that the program does not know. */
export class Installing {
  readonly test: TestApp;
  readonly platform: StandIn;
  readonly remote: PlatformShop;

  constructor(opened: TestApp, platform: StandIn, domain = NEW_SHOP) {
    this.test = opened;
    this.platform = platform;
    this.remote = platform.shop(domain);
  }

  get store() {
    return this.test.app.store;
  }

  /** An ID token as the platform's admin makes it. */
  idToken = (claims: IdTokenClaims = {}, secret = SECRET, shop = this.remote.domain): string =>
    signIdToken(idTokenClaims(shop, "client", this.test.clock.ms, claims), { secret });

  /** An ID token, and what it proves. */
  token = (secret = SECRET, shop = this.remote.domain): [IdToken, string] => {
    const issuedAt = this.test.clock.ms;
    return [{ shop, staff: "42", session: "a2b3c4d5e6f7", issuedAt }, this.idToken({}, secret, shop)];
  };

  /** Opens the page with a new ID token. */
  open = (): Promise<Opening> => this.test.app.platform.installer.open(...this.token());

  shopId = async (): Promise<number> => (await this.store.shops.find(this.remote.domain))?.id ?? 0;

  connection = async () => this.store.connections.find(await this.shopId());

  tokens = async () => this.store.connections.tokens(await this.shopId());

  /**
   * Holds back the platform's next tokens, and ends the wait of the page view for them.
   * @returns a function that lets the platform answer
   */
  outlastView = (): (() => void) => {
    const viewWait = new AbortController();
    const { timeout } = AbortSignal;
    const spy = spyOn(AbortSignal, "timeout").mockImplementation((ms) =>
      ms === VIEW_WAIT_MS ? viewWait.signal : timeout.call(AbortSignal, ms),
    );
    afterTest(() => spy.mockRestore());
    const { promise, resolve } = Promise.withResolvers<void>();
    afterTest(resolve);
    this.platform.fault = ({ operation }) => {
      if (operation !== "exchange") return undefined;
      viewWait.abort();
      return { until: promise };
    };
    return resolve;
  };

  /** Waits until all exchanges and checks that page views started have ended. */
  settled = (): Promise<void> => this.test.app.platform.installer.drain();
}

export async function installing(env: Record<string, string> = {}): Promise<Installing> {
  let now = () => START;
  const platform = await StandIn.start({ clientSecret: SECRET, now: () => now() });
  afterTest(() => platform.stop());
  platform.addShop(NEW_SHOP, { currency: "JPY" });
  const opened = await appBeside(platform, env);
  now = opened.clock.now;
  return new Installing(opened, platform);
}

/** Another program of the same app. */
export function appBeside(platform: StandIn, env: Record<string, string> = {}): Promise<TestApp> {
  return testApp({ ...platformEnv(platform), ...env });
}
