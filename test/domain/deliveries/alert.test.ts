import { expect, test } from "bun:test";
import { type Alert, alertText, overText } from "../../../src/domain/deliveries/alert.ts";
import { START } from "../../support/app.ts";

const alert: Alert = { cause: "endpoint", since: START, failures: 5, lastAt: START, host: "h.example", error: "No." };

test("each alert says what fails, since when, and what to do", () => {
  expect(alertText(alert)).toBe(
    "Your endpoint h.example has failed since 2026-03-01 12:00 UTC. No. Repair it before more deliveries die.",
  );
  expect(alertText({ ...alert, cause: "dead" })).toBe(
    "Deliveries to your endpoint h.example have been dead since 2026-03-01 12:00 UTC. No. Repair the endpoint, then resend.",
  );
  expect(alertText({ ...alert, cause: "dead", host: null, error: null })).toBe(
    "Workflows have not started since 2026-03-01 12:00 UTC. Read the errors of their deliveries, then resend.",
  );
  const refused = { ...alert, cause: "connection", host: null } as const;
  expect(alertText({ ...refused, error: "it is revoked (HTTP 401); run `sds shop connect`" })).toBe(
    "Shopify has refused the app's connection since 2026-03-01 12:00 UTC. " +
      "Open the app in Shopify's admin. If that does not help, install it there again.",
  );
  expect(alertText({ ...refused, error: "the shop is frozen (HTTP 402); wait" })).toBe(
    "Shopify has refused the app's connection since 2026-03-01 12:00 UTC. " +
      "Shopify has frozen the shop, because a bill is unpaid. " +
      "Pay the bill in Shopify's admin. Then the connection comes back by itself.",
  );
});

test("the end of each alert says what works again", () => {
  expect(overText(alert)).toBe("Your endpoint h.example answers again.");
  expect(overText({ ...alert, cause: "dead" })).toBe(
    "Deliveries to your endpoint h.example arrive again, and none is dead.",
  );
  expect(overText({ ...alert, cause: "dead", host: null })).toBe("Workflows start again.");
  expect(overText({ ...alert, cause: "connection", host: null })).toBe("Shopify accepts the app's connection again.");
});
