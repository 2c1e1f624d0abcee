const REFRESH_TOKEN_LIFE_S = 90 * 86_400;

export interface TokenAnswer {
  status: number;
  body: Record<string, unknown>;
}

interface TokenRequest {
  grant_type?: unknown;
  refresh_token?: unknown;
  client_assertion?: unknown;
}

interface RefreshToken {
  /** Epoch milliseconds. */
  endsAt: number;
  /** The refresh token that was exchanged for this token. The old token is accepted until the new token is used. */
  replaces: string | undefined;
}

/** Seconds. */
export interface Lifetimes {
  clientCredentials: number;
  refreshed: number;
}

/** The access tokens of one shop, and when each token expires. A permanent token never expires. */
export class Tokens {
  private readonly access = new Map<string, number>();
  private readonly refresh = new Map<string, RefreshToken>();
  /** Whether answers say how long a token lives. */
  namesLife = true;
  private readonly now: () => number;
  private readonly lifetimes: Lifetimes;

  constructor(now: () => number, lifetimes: Lifetimes) {
    this.now = now;
    this.lifetimes = lifetimes;
  }

  issue(seconds = Number.POSITIVE_INFINITY): string {
    const token = `shpat_${crypto.randomUUID().replaceAll("-", "")}`;
    this.access.set(token, this.now() + seconds * 1000);
    return token;
  }

  issuePair(replaces?: string): { accessToken: string; refreshToken: string } {
    const refreshToken = `shprt_${crypto.randomUUID().replaceAll("-", "")}`;
    this.refresh.set(refreshToken, { endsAt: this.now() + REFRESH_TOKEN_LIFE_S * 1000, replaces });
    return { accessToken: this.issue(this.lifetimes.refreshed), refreshToken };
  }

  /** Access tokens stay valid until they expire, but all refresh tokens are refused. */
  endRefreshTokens(): void {
    this.refresh.clear();
  }

  revoke(): void {
    this.access.clear();
    this.refresh.clear();
  }

  isGood(token: string | undefined): boolean {
    return token !== undefined && (this.access.get(token) ?? 0) > this.now();
  }

  /** Answers an exchange of a valid ID token. The previous pair stays valid. */
  exchange(scope: string): TokenAnswer {
    return { status: 200, body: this.pairBody(this.issuePair(), scope) };
  }

  /** Answers a request of a known client. */
  grant({ grant_type, refresh_token, client_assertion }: TokenRequest, scope: string): TokenAnswer {
    if (grant_type === "client_credentials") {
      const { clientCredentials, refreshed } = this.lifetimes;
      // Only an app with public distribution has a key. Such an app gets tokens for an hour.
      const expires_in = client_assertion === undefined ? clientCredentials : refreshed;
      const access_token = this.issue(expires_in);
      return { status: 200, body: { access_token, scope, ...(this.namesLife && { expires_in }) } };
    }
    if (grant_type !== "refresh_token") return { status: 400, body: { error: "unsupported_grant_type" } };
    const used = typeof refresh_token === "string" ? this.refresh.get(refresh_token) : undefined;
    if (typeof refresh_token !== "string" || used === undefined || used.endsAt <= this.now())
      return { status: 400, body: { error: "invalid_grant" } };
    if (used.replaces !== undefined) this.refresh.delete(used.replaces);
    // If a refresh token was replaced several times, only the last replacement is valid. This is a guess: the
    // documentation does not say.
    for (const [token, { replaces }] of this.refresh) if (replaces === refresh_token) this.refresh.delete(token);
    return { status: 200, body: this.pairBody(this.issuePair(refresh_token), scope) };
  }

  private pairBody({ accessToken, refreshToken }: ReturnType<Tokens["issuePair"]>, scope: string): TokenAnswer["body"] {
    return {
      access_token: accessToken,
      refresh_token: refreshToken,
      scope,
      ...(this.namesLife && { expires_in: this.lifetimes.refreshed }),
      refresh_token_expires_in: REFRESH_TOKEN_LIFE_S,
    };
  }
}
