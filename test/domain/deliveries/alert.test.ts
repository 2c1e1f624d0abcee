import { expect, test } from "bun:test";
import { type Alert, alertText } from "../../../src/domain/deliveries/alert.ts";
import { START } from "../../support/app.ts";

const alert: Alert = { cause: "endpoint", since: START, failures: 5, lastAt: START, host: "h.example", error: "No." };

test("each alert says what fails, since when, and what to do", () => {
  expect(alertText(alert)).toBe(
    "Your endpoint h.example has failed since 2026-03-01 12:00 UTC. No. Repair it before more deliveries are dead.",
  );
  expect(alertText({ ...alert, cause: "dead" })).toBe(
    "Deliveries to your endpoint h.example are dead since 2026-03-01 12:00 UTC. No. Repair the endpoint, then resend.",
  );
  expect(alertText({ ...alert, cause: "dead", host: null, error: null })).toBe(
    "Workflows have not started since 2026-03-01 12:00 UTC. Read the errors of their deliveries, then resend.",
  );
  expect(alertText({ ...alert, cause: "connection", host: null, error: "it was revoked" })).toBe(
    "Shopify has refused the app's connection since 2026-03-01 12:00 UTC. It was revoked. " +
      "Open the app in Shopify's admin, or ask the operator of this service.",
  );
});
