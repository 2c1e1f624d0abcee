import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from "jose";
import { isDomain } from "../../domain/shop.ts";
import type { AppSecrets } from "../api/app-secrets.ts";

/** The facts that a valid ID token proves. Everything else in a request of the embedded page can be forged. */
export interface IdToken {
  /** The shop's domain, from `dest`. */
  shop: string;
  /** The number of the staff member, from `sub`. */
  staff: string;
  /** The session of the staff member with this app, from `sid`. */
  session: string;
  /** When the platform made the token, epoch milliseconds. The app was already installed at that time. */
  issuedAt: number;
}

/** Why an ID token is refused. */
type IdTokenRefusal =
  | "not a JWT"
  | "wrong algorithm"
  | "critical header"
  | "wrong signature"
  | "a claim is missing or has a wrong type"
  | "for another app"
  | "expired"
  | "not valid yet"
  | "lives too long"
  | "not of a shop"
  | "wrong issuer"
  | "not of a staff member";

export type IdTokenVerifier = (token: string) => Promise<IdToken | { refused: IdTokenRefusal }>;

interface Dependencies {
  /** Without a client id, every token is refused. */
  clientId: string | null;
  secrets: AppSecrets;
  /** The platform's time, epoch milliseconds. */
  now: () => number;
}

const ALGORITHM = "HS256";
/** How far the clocks of the platform and of this machine may differ. */
const CLOCK_TOLERANCE_S = 10;
/** Maximum accepted lifetime of an ID token. The platform's tokens expire after a minute. */
const MAX_LIFE_S = 300;
/** Maximum length of an ID token. The platform's tokens are shorter. The limit bounds the work for a forged token. */
const MAX_LENGTH = 4096;
const CLAIMS = ["iss", "dest", "aud", "sub", "exp", "nbf", "iat", "sid"];
const SHOP = /^[a-z0-9][a-z0-9-]*\.myshopify\.com$/;
const HTTPS = "https://";
/** The form of a staff member's `sub`. In signed tokens of the platform's extensions, `sub` is a customer's gid. */
const STAFF = /^\d{1,20}$/;
const MAX_SESSION = 255;

/**
 * Creates the check of ID tokens, which the platform's admin gives to the embedded page. An ID token is a JWT that the
 * platform signs with the app's client secret. jose checks the signature and the times. It accepts tokens without
 * times, and a list as `aud`, so the claims are checked here too.
 */
export function createIdTokenVerifier({ clientId, secrets, now }: Dependencies): IdTokenVerifier {
  return async (token) => {
    const refused = refusedHeader(token);
    if (refused !== undefined) return { refused };
    if (clientId === null) return { refused: "for another app" };
    const nowS = Math.floor(now() / 1000);
    let refusal: IdTokenRefusal = "wrong signature";
    for (const secret of secrets()) {
      const verified = await verifyWith(secret, token, new Date(nowS * 1000));
      if (typeof verified === "object") return readClaims(verified, clientId, nowS);
      // If the signature is right, no other secret needs to be tried.
      if (verified !== "wrong signature") return { refused: verified };
      refusal = verified;
    }
    return { refused: refusal };
  };
}

/** Whether a text has the form of the domains that the platform gives to shops. */
export function isShopOfPlatform(text: string): boolean {
  return SHOP.test(text) && isDomain(text);
}

function refusedHeader(token: string): IdTokenRefusal | undefined {
  if (token.length > MAX_LENGTH || !/^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)) return "not a JWT";
  try {
    const header = decodeProtectedHeader(token);
    if (header.alg !== ALGORITHM) return "wrong algorithm";
    return "crit" in header || "b64" in header ? "critical header" : undefined;
  } catch {
    return "not a JWT";
  }
}

async function verifyWith(secret: string, token: string, currentDate: Date): Promise<JWTPayload | IdTokenRefusal> {
  const options = { algorithms: [ALGORITHM], clockTolerance: CLOCK_TOLERANCE_S, currentDate, requiredClaims: CLAIMS };
  try {
    return (await jwtVerify(token, new TextEncoder().encode(secret), options)).payload;
  } catch (thrown) {
    if (thrown instanceof errors.JWSSignatureVerificationFailed) return "wrong signature";
    if (thrown instanceof errors.JWTExpired) return "expired";
    if (thrown instanceof errors.JWTClaimValidationFailed)
      return thrown.claim === "nbf" && thrown.reason === "check_failed"
        ? "not valid yet"
        : "a claim is missing or has a wrong type";
    if (thrown instanceof errors.JOSEError) return "not a JWT";
    throw thrown;
  }
}

function readClaims(claims: JWTPayload, clientId: string, nowS: number): IdToken | { refused: IdTokenRefusal } {
  const { iss, aud, sub, exp, nbf, iat } = claims;
  const { dest, sid } = claims as { dest?: unknown; sid?: unknown };
  const areTimes = [exp, nbf, iat].every((time) => typeof time === "number" && Number.isFinite(time));
  if (!areTimes || typeof dest !== "string" || typeof sid !== "string" || typeof sub !== "string")
    return { refused: "a claim is missing or has a wrong type" };
  if (aud !== clientId) return { refused: "for another app" };
  if ((exp ?? 0) > nowS + MAX_LIFE_S) return { refused: "lives too long" };
  if ((iat ?? 0) > nowS + CLOCK_TOLERANCE_S) return { refused: "not valid yet" };
  const shop = dest.slice(HTTPS.length);
  if (!dest.startsWith(HTTPS) || !isShopOfPlatform(shop)) return { refused: "not of a shop" };
  if (iss !== `${dest}/admin`) return { refused: "wrong issuer" };
  if (!STAFF.test(sub) || sid === "" || sid.length > MAX_SESSION) return { refused: "not of a staff member" };
  return { shop, staff: sub, session: sid, issuedAt: Math.floor((iat ?? 0) * 1000) };
}
