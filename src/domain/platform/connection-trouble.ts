/** Tells a merchant what is wrong with the shop's connection, and what to do. Both are sentences. */
export interface TroubleText {
  what: string;
  todo: string;
}

const OPEN_AGAIN = "Open the app in Shopify's admin. If that does not help, install it there again.";
const ASK_OPERATOR = "Tell the operator of this service.";

export const NOT_CONNECTED: TroubleText = {
  what: "The shop is not connected to Shopify.",
  todo: "Install the app in Shopify's admin, or ask the operator of this service to connect the shop.",
};

/** The text for a trouble whose reason is unknown. */
export const REFUSED: TroubleText = { what: "Shopify refuses the app's access.", todo: OPEN_AGAIN };

/** Each key is the HTTP status of Shopify's answer. */
const TEXTS: Record<string, TroubleText> = {
  301: { what: "The shop has another domain now.", todo: ASK_OPERATOR },
  402: {
    what: "Shopify has frozen the shop, because a bill is unpaid.",
    todo: "Pay the bill in Shopify's admin. Then the connection comes back by itself.",
  },
  403: { what: "The shop or Shopify does not allow the app.", todo: OPEN_AGAIN },
  404: {
    what: "Shopify does not know the shop.",
    todo: "If the shop has another domain now, tell the operator of this service.",
  },
  423: { what: "Shopify has locked the shop.", todo: "Ask Shopify's support why." },
  430: {
    what: "Shopify mistakes the requests of this service for an attack.",
    todo: "This usually ends by itself. If it lasts for hours, tell the operator of this service.",
  },
};

/** Texts for a merchant if Shopify has not approved the app. Each key is the kind of a connection warning. */
export const MISSING_APPROVALS: Record<string, TroubleText> = {
  "level 1": { what: "Shopify has not approved the app to read customers and orders.", todo: ASK_OPERATOR },
  "level 2": {
    what: "Shopify has not approved the app to read names and e-mail addresses, so they are missing.",
    todo: ASK_OPERATOR,
  },
};

/**
 * Tells a merchant about a trouble of the shop's connection.
 * @param trouble the stored text. It is for operators, and may contain shell commands
 */
export function explainTrouble(trouble: string): TroubleText {
  const [, scopes] = /^the shop does not grant (.*)$/.exec(trouble) ?? [];
  if (scopes !== undefined)
    return {
      what: `The shop does not allow the app to use ${scopes}.`,
      todo: "Open the app in Shopify's admin, and accept the permissions that it asks for.",
    };
  const [, status = ""] = /\(HTTP (\d{3})\)/.exec(trouble) ?? [];
  return TEXTS[status] ?? REFUSED;
}

/**
 * Tells a merchant about an error that occurred in work with the platform.
 * @param error the text for operators, which may contain shell commands
 * @returns an empty `todo` for an error without a command
 */
export function explainError(error: string): TroubleText {
  return error.includes("`")
    ? explainTrouble(error)
    : { what: error.replaceAll(/\bthe platform\b/gi, "Shopify"), todo: "" };
}
