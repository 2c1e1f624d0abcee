import type { ConnectionKind, Tokens } from "../../domain/connection.ts";
import { messageOf } from "../../domain/error.ts";
import type { Sleep } from "../../lib/sleep.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { ConnectionStore } from "../../store/connections.ts";
import { addressOf } from "./address.ts";
import { PlatformError } from "./platform-error.ts";
import { type Answer, postJson } from "./post-json.ts";

/** Who we are to the platform. */
export interface AppCredentials {
  clientId: string | null;
  /** The app's newest secret. @throws if there is none */
  clientSecret: () => string;
}

/** Whatever the platform says; seconds. */
const LONGEST_LIFE = 366 * 86_400;
/** A token is renewed so long before it ends. */
const RENEW_BEFORE = 5 * 60_000;
/** How long one process may take over a renewal before another tries. */
const RENEWAL_MAY_TAKE = 60_000;
const LOOK_AGAIN_AFTER = 200;

/** Asks the platform for tokens. */
export class TokenEndpoint {
  private readonly fetch: typeof globalThis.fetch;
  private readonly base: string;
  private readonly app: AppCredentials;
  private readonly now: () => number;

  constructor(fetch: typeof globalThis.fetch, base: string, app: AppCredentials, now: () => number) {
    this.fetch = fetch;
    this.base = base;
    this.app = app;
    this.now = now;
  }

  /** A token by the app's own credentials. @throws PlatformError */
  byClientCredentials(domain: string): Promise<Tokens> {
    return this.request(domain, { grant_type: "client_credentials" }, null);
  }

  /** The next pair. @throws PlatformError */
  byRefreshToken(domain: string, refreshToken: string): Promise<Tokens> {
    return this.request(domain, { grant_type: "refresh_token", refresh_token: refreshToken }, refreshToken);
  }

  private async request(domain: string, grant: Record<string, string>, refreshToken: string | null): Promise<Tokens> {
    const { clientId, clientSecret } = this.app;
    if (clientId === null) throw new PlatformError("unauthorized", "SDS_PLATFORM_CLIENT_ID is not set");
    const form = new URLSearchParams({ client_id: clientId, client_secret: secretOf(clientSecret), ...grant });
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    const answer = await postJson(this.fetch, addressOf(this.base, domain).tokens, form.toString(), headers);
    const { access_token, refresh_token, expires_in } = answer.body ?? {};
    if (answer.status !== 200 || !isToken(access_token)) throw refusal(answer);
    const lives = typeof expires_in === "number" && expires_in > 0 ? Math.min(Math.floor(expires_in), LONGEST_LIFE) : null;
    return {
      accessToken: access_token,
      refreshToken: isToken(refresh_token) ? refresh_token : refreshToken,
      expiresAt: lives === null ? null : this.now() + lives * 1000,
    };
  }
}

/** The operator's file may be gone meanwhile: that is the shop's trouble with the platform, and not a defect. */
function secretOf(read: () => string): string {
  try {
    return read();
  } catch (thrown) {
    throw new PlatformError("unauthorized", messageOf(thrown));
  }
}

/** What can stand in a header. */
function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{1,4096}$/.test(value);
}

function refusal({ status, body, retryAfter }: Answer): PlatformError {
  if (status === 429 || status >= 500) {
    return new PlatformError("unavailable", `the platform answered HTTP ${status} to a request for a token`, { status, retryAfter });
  }
  const said = typeof body?.["error"] === "string" ? `: ${body["error"].slice(0, 100)}` : "";
  return new PlatformError("unauthorized", `the platform gave no token, HTTP ${status}${said}`, { status });
}

/** The tokens of connected shops, renewed before they end. */
export class TokenKeeper {
  private readonly store: ConnectionStore;
  private readonly endpoint: TokenEndpoint;
  private readonly now: () => number;
  private readonly sleep: Sleep;
  /** Tells this process from others that renew. */
  private readonly process = crypto.randomUUID();
  private readonly renewals = new Map<number, Promise<Tokens>>();
  /** What the platform gave and could not be stored yet: its refresh token is the only one that is good. */
  private readonly unsaved = new Map<number, Tokens>();

  constructor(store: ConnectionStore, endpoint: TokenEndpoint, now: () => number, sleep: Sleep) {
    this.store = store;
    this.endpoint = endpoint;
    this.now = now;
    this.sleep = sleep;
  }

  /**
   * A token that holds.
   * @param refused a token that the platform just refused: another one is wanted
   * @param signal ends the waiting, and not a renewal that is under way: what it gives must be stored
   * @throws PlatformError, or the signal's reason
   */
  async accessToken(shop: { id: number; domain: string }, refused?: string, signal?: AbortSignal): Promise<string> {
    await this.saveUnsaved(shop.id);
    const connection = await this.store.find(shop.id);
    const tokens = await this.store.tokens(shop.id);
    if (connection === undefined || tokens === undefined) throw new PlatformError("unauthorized", "the shop is not connected to the platform");
    const holds = tokens.accessToken !== refused && (tokens.expiresAt === null || tokens.expiresAt - RENEW_BEFORE > this.now());
    if (holds) return tokens.accessToken;
    if (connection.kind === "token") throw new PlatformError("unauthorized", "the platform refuses the shop's token", { status: 401 });
    const running = this.renewals.get(shop.id) ?? this.renew(shop, connection.kind, tokens).finally(() => this.renewals.delete(shop.id));
    this.renewals.set(shop.id, running);
    return (await (signal === undefined ? running : untilAborted(running, signal))).accessToken;
  }

  /** Waits for renewals that are under way. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.renewals.values());
  }

  private async saveUnsaved(shopId: number): Promise<void> {
    const tokens = this.unsaved.get(shopId);
    if (tokens === undefined) return;
    await this.store.renew(shopId, tokens);
    this.unsaved.delete(shopId);
  }

  private async renew(shop: { id: number; domain: string }, kind: ConnectionKind, old: Tokens): Promise<Tokens> {
    while (!(await this.store.beginRenewal(shop.id, this.process, this.now(), this.now() + RENEWAL_MAY_TAKE))) {
      await this.sleep(LOOK_AGAIN_AFTER);
      const current = await this.store.tokens(shop.id);
      if (current === undefined) throw new PlatformError("unauthorized", "the shop is not connected to the platform");
      // Another process renewed them meanwhile.
      if (current.accessToken !== old.accessToken) return current;
    }
    try {
      // Renewed by another process between the look and the turn.
      const current = (await this.store.tokens(shop.id)) ?? old;
      if (current.accessToken !== old.accessToken) return current;
      const tokens =
        kind === "refresh" && old.refreshToken !== null
          ? await this.endpoint.byRefreshToken(shop.domain, old.refreshToken)
          : await this.endpoint.byClientCredentials(shop.domain);
      this.unsaved.set(shop.id, tokens);
      await this.saveUnsaved(shop.id);
      return tokens;
    } finally {
      await this.store.endRenewal(shop.id, this.process);
    }
  }
}
