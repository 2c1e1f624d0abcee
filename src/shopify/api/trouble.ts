import type { JsonResponse } from "./post-json.ts";

/** Advice for a shop whose access token is refused and cannot be renewed. */
const CONNECT_AGAIN = "connect the shop again: open the app in the shop's admin, or run `sds shop connect`";

/** The part of a response that says why the platform refuses a shop's connection. */
type RefusedResponse = Pick<JsonResponse, "status"> & Partial<Pick<JsonResponse, "movedTo">>;

/** Says why the platform refuses a shop's connection, and what to do; undefined if the platform accepts it. */
export function troubleOfStatus({ status, movedTo }: RefusedResponse): string | undefined {
  switch (status) {
    case 301:
      return (
        `the shop has another domain now (HTTP 301)${movedTo === undefined ? "" : `: ${movedTo}`}; ` +
        `rename it with \`sds shop rename OLD ${movedTo ?? "NEW"}\``
      );
    case 401:
      return `the platform refuses the shop's token (HTTP 401); ${CONNECT_AGAIN}`;
    case 402:
      return "the shop is frozen, because a bill is unpaid (HTTP 402); wait until it is paid";
    case 403:
      return (
        "the shop or the platform does not allow the app (HTTP 403); " +
        "check the app in the shop and in the platform's developer dashboard"
      );
    case 404:
      return (
        "the platform does not know the shop (HTTP 404); " +
        "check whether it was closed; if it has another domain, run `sds shop rename`"
      );
    case 423:
      return "the platform has locked the shop (HTTP 423); its owner has to ask the platform's support";
    case 430:
      return (
        "the platform mistakes the requests for an attack and refuses them (HTTP 430); " +
        "if this lasts for hours, ask the platform's support"
      );
    default:
      return undefined;
  }
}

/**
 * Whether new tokens may end a trouble. Other troubles end when the shop or the platform acts.
 * @param trouble a text of `troubleOfStatus` or `troubleOfTokenRequest`
 */
export function needsNewTokens(trouble: string): boolean {
  return !/\(HTTP (301|402|403|404|423|430)\)/.test(trouble);
}

/** `new`: the operator has just given the refresh token. `unended`: the refresh token has not expired yet. */
export type RefreshCredential = "refresh token" | "new refresh token" | "unended refresh token";
/** The credential in a token request. */
export type Credential = "client secret" | "app key" | RefreshCredential;

const CHECKS: Record<"client secret" | "app key", string> = {
  "client secret": "check the app's client id and secret, and whether the app is installed in the shop",
  "app key":
    "check whether the developer dashboard has the public half of the app's key (`sds platform jwk`), " +
    "and whether the app is installed in the shop",
};

/** Whether the platform will probably serve the shop again: false if the shop was closed or the app is not allowed. */
export function mayPass(status: number | null): boolean {
  return status !== null && [301, 402, 423, 430].includes(status);
}

/** Says why a token request is refused, and what to do. @param error the error code, see RFC 6749, 5.2 */
export function troubleOfTokenRequest(
  refusal: RefusedResponse,
  error: string | undefined,
  credential: Credential,
): string {
  const { status } = refusal;
  if (error === "invalid_grant" && credential.endsWith("refresh token"))
    return refreshTokenText(`(HTTP ${status}: ${error})`, credential);
  const known = status === 401 ? undefined : troubleOfStatus(refusal);
  const detail = error === undefined ? "" : `: ${error.slice(0, 100)}`;
  const advice = CHECKS[credential === "app key" ? "app key" : "client secret"];
  return known ?? `the platform gave no token, HTTP ${status}${detail}; ${advice}`;
}

/** Says why a refresh token is refused. @param refusal a text such as `(HTTP 400: invalid_grant)` */
function refreshTokenText(refusal: string, credential: Credential): string {
  if (credential === "new refresh token") {
    const advice = "get another one from the platform: each is replaced by its first use";
    return `the refresh token has expired, or another program has used it ${refusal}; ${advice}`;
  }
  if (credential === "refresh token") return `the refresh token has expired ${refusal}; ${CONNECT_AGAIN}`;
  return (
    `the platform refuses the refresh token before it expires ${refusal}: another program, such as the billing app, ` +
    `has used it, or the app was installed again; give sds tokens of its own, and ${CONNECT_AGAIN}`
  );
}
