/** The public half of the app's own key, and the platform's rules for assertions that the key signs. */
export class AppKey {
  jwk: (JsonWebKey & { kid?: string }) | undefined;
  alg: "RS256" | "PS256" = "RS256";
  audience: "token endpoint" | "shop" = "token endpoint";
  private readonly usedIds = new Set<string>();

  /**
   * @param shopUrl the shop's URL, without a path of the API
   * @param now epoch milliseconds
   * @returns why an assertion is refused; undefined if it is accepted
   */
  async refusal(assertion: string, { clientId, shopUrl, now }: { clientId: string; shopUrl: string; now: number }) {
    const [head = "", body = "", signature = ""] = assertion.split(".");
    const { alg, kid } = decoded(head);
    const { iss, sub, aud, jti, iat, exp } = decoded(body);
    if (this.jwk === undefined || kid !== this.jwk.kid) return "unknown key";
    if (alg !== this.alg) return "wrong algorithm";
    const name = alg === "PS256" ? "RSA-PSS" : "RSASSA-PKCS1-v1_5";
    const algorithm = { name, hash: "SHA-256", saltLength: 32 };
    const { kty, n, e } = this.jwk;
    const key = await crypto.subtle.importKey("jwk", { kty, n, e } as JsonWebKey, algorithm, false, ["verify"]);
    const signed = Buffer.from(`${head}.${body}`);
    if (!(await crypto.subtle.verify(algorithm, key, Buffer.from(signature, "base64url"), signed)))
      return "wrong signature";
    if (iss !== clientId || sub !== clientId) return "wrong issuer or subject";
    if (aud !== (this.audience === "shop" ? shopUrl : `${shopUrl}/admin/oauth/access_token`)) return "wrong audience";
    const isCurrent = Number(iat) * 1000 <= now && Number(exp) * 1000 > now && Number(exp) - Number(iat) <= 300;
    if (!isCurrent) return "wrong time";
    if (typeof jti !== "string" || this.usedIds.has(jti)) return "used before";
    this.usedIds.add(jti);
    return undefined;
  }
}

function decoded(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;
}
