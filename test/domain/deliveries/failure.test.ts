import { expect, test } from "bun:test";
import { addressError, connectError, httpError, timeoutError } from "../../../src/domain/deliveries/delivery.ts";
import { explainFailure } from "../../../src/domain/deliveries/failure.ts";
import { connectReason } from "../../../src/lib/networks.ts";

const ofStatus = (statusCode: number) => explainFailure({ statusCode, error: httpError(statusCode) });
const ofError = (error: string) => explainFailure({ statusCode: null, error });
const ofCode = (code: string) => ofError(connectError(connectReason({ code })));

test("a success has no explanation", () => {
  expect(explainFailure({ statusCode: 204, error: null })).toBeUndefined();
});

test.each<[number, string]>([
  [301, "Enter the address to which it redirects."],
  [400, "did not accept the body"],
  [401, "current signing secret"],
  [403, "firewall"],
  [404, "Correct the path"],
  [405, "accepts no POST"],
  [410, "Correct the path"],
  [418, "Your program refused the request."],
  [500, "Your program failed."],
  [502, "Check that your program runs."],
  [503, "overloaded"],
  [504, "Check that your program runs."],
  [599, "Your program failed."],
])("the status %i says what to change", (status, part) => {
  expect(ofStatus(status)).toEqual({
    what: `Your endpoint answered ${status}.`,
    todo: expect.stringContaining(part),
  });
});

test.each<[string, string]>([
  ["ConnectionRefused", "Start your program"],
  ["ConnectionClosed", "closed the connection before it had answered"],
  ["ETIMEDOUT", "firewall"],
  ["EHOSTUNREACH", "firewall"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate for the name in the address"],
  ["CERT_HAS_EXPIRED", "Renew the certificate"],
  ["CERT_NOT_YET_VALID", "valid today"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "public authority"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "public authority"],
  ["UNKNOWN_CERTIFICATE_VERIFICATION_ERROR", "public authority"],
  ["EPROTO", "speaks https"],
  ["Malformed_HTTP_Response", "Correct the port"],
  ["ResponseHeadersTooLarge", "64 KiB of headers"],
  ["SOMETHING_NEW", "Check that the server is running"],
])("the connection's error %s says what to change", (code, part) => {
  const { what, todo } = ofCode(code) ?? {};
  expect(what).toStartWith("We could not connect to your endpoint: ");
  expect(todo).toContain(part);
});

test.each<[string, string, string]>([
  [timeoutError(10_000), "Your endpoint did not answer within 10 seconds.", "a 2xx status first"],
  [
    addressError("10.0.0.1 is a private address"),
    "Your endpoint's address is not allowed: 10.0.0.1 is a private address.",
    "a public address",
  ],
  [
    connectError("the name certificate.example does not resolve"),
    "We could not connect to your endpoint: the name certificate.example does not resolve.",
    "the DNS of your domain",
  ],
  [
    connectError("the name a.example did not resolve in time"),
    "We could not connect to your endpoint: the name a.example did not resolve in time.",
    "name servers",
  ],
  ["The shop has no endpoint.", "The shop has no endpoint.", "Enter the address"],
])("%p is said as %p", (error, what, part) => {
  expect(ofError(error)).toEqual({ what, todo: expect.stringContaining(part) });
});
