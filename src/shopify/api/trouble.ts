/** Advice for a shop whose access token is refused and cannot be renewed. */
const CONNECT_AGAIN = "connect the shop again with `sds shop connect`";

/** Says why the platform refuses a shop's connection, and what to do; undefined if it does not refuse it. */
export function troubleOfStatus(status: number): string | undefined {
  switch (status) {
    case 401:
      return `the platform refuses the shop's token (HTTP 401); ${CONNECT_AGAIN}`;
    case 402:
      return "the shop is frozen, because a bill is unpaid (HTTP 402); nothing can be done but wait until it is paid";
    case 403:
      return (
        "the shop or the platform does not allow the app (HTTP 403); " +
        "look at the app in the shop and in the platform's developer dashboard"
      );
    default:
      return undefined;
  }
}

/** What a token is requested with. The operator has just given a new refresh token. */
export type Credential = "client secret" | "app key" | "refresh token" | "new refresh token";

const CHECKS: Record<"client secret" | "app key", string> = {
  "client secret": "check the app's client id and secret, and whether the app is installed in the shop",
  "app key":
    "check whether the developer dashboard has the public half of the app's key (`sds platform jwk`), " +
    "and whether the app is installed in the shop",
};

/** Says why a token request is refused, and what to do. @param error RFC 6749, 5.2 */
export function troubleOfTokenRequest(status: number, error: string | undefined, credential: Credential): string {
  if (error === "invalid_grant" && credential !== "app key") {
    const isNew = credential === "new refresh token";
    const advice = isNew ? "get another one from the platform: each is replaced by its first use" : CONNECT_AGAIN;
    return `the refresh token has ended (HTTP ${status}: ${error}); ${advice}`;
  }
  const known = status === 401 ? undefined : troubleOfStatus(status);
  const detail = error === undefined ? "" : `: ${error.slice(0, 100)}`;
  const advice = CHECKS[credential === "app key" ? "app key" : "client secret"];
  return known ?? `the platform gave no token, HTTP ${status}${detail}; ${advice}`;
}
