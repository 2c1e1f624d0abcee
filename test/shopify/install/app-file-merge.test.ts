import { describe, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { mergeAppFile } from "../../../src/shopify/install/app-file-merge.ts";
import { appFiles, appScopes } from "../../../src/shopify/install/app-files.ts";
import { DeployedApp } from "../../support/platform/deployed-app.ts";

const ADDRESS = "https://sds.example.com";
const URI = `${ADDRESS}/platform/webhooks`;
const NEEDS = { address: ADDRESS, clientId: null, scopes: appScopes([]) };

/** The file of a billing app. A person chose its order, comments and spaces. */
const BILLING = `# The app that bills. Ask Ada before a change!
client_id = "abc"   # production
name = 'Billing'
handle = "billing-app"
application_url = "https://billing.example.com/"
embedded = true
extension_directories = ["ours/*"]

[build]
include_config_on_deploy = true

[access_scopes]
# https://shopify.dev/docs/api/usage/access-scopes
scopes = "write_own_subscription_contracts,read_customers" # two
optional_scopes = [ "write_discounts" ]

[auth]
redirect_urls = [ "https://billing.example.com/auth/callback", ]

[webhooks]
api_version = "2025-10"

  [[webhooks.subscriptions]]
  topics = [ "app/uninstalled" ] # first
  uri = "/webhooks/uninstalled"

  # the privacy law
  [[webhooks.subscriptions]]
  compliance_topics = [ "customers/redact" ]
  uri = "/webhooks/privacy"

# the cash desk
[pos]
embedded = false
`;

const merge = (text: string, needs: Partial<typeof NEEDS> = {}) => mergeAppFile(text, { ...NEEDS, ...needs });
const parsed = (text: string) => Bun.TOML.parse(text) as unknown as { webhooks: { subscriptions: { uri: string }[] } };

/** Returns the lines of `before` that `after` does not have, or has in another order. */
function lostLines(before: string, after: string): string[] {
  const lines = after.split("\n");
  return before.split("\n").filter((line) => {
    const at = lines.indexOf(line);
    lines.splice(0, at + 1);
    return at === -1;
  });
}

describe("a merge into the file of an app", () => {
  test("joins scopes and webhooks, and leaves all else byte for byte", () => {
    const { text, added, notes, extensions } = merge(BILLING);
    const scopes = "write_own_subscription_contracts,read_customers,read_orders,read_all_orders,read_products";
    const joined = BILLING.replace("write_own_subscription_contracts,read_customers", scopes);
    expect(text).toStartWith(joined);
    expect(text.slice(joined.length)).toStartWith("\n# Added by `sds platform files`\n  [[webhooks.subscriptions]]\n");
    expect(extensions).toBe("ours");
    expect(added[0]).toBe("scopes: read_orders, read_all_orders, read_products");
    expect(added.slice(1).every((line) => line.startsWith(`webhooks to ${URI}: `))).toBe(true);
    expect(notes).toEqual([
      "the file sends customers/redact to https://billing.example.com/webhooks/privacy, and allows no second receiver: " +
        `let this receiver forward them to ${URI}`,
    ]);
    const subscriptions = parsed(text).webhooks.subscriptions;
    expect(subscriptions.map(({ uri }) => uri)).toEqual(["/webhooks/uninstalled", "/webhooks/privacy", URI, URI, URI]);
  });

  test("knows scopes with spaces around them", () => {
    const spaced = BILLING.replace("write_own_subscription_contracts,read_customers", "read_products , read_customers");
    expect(merge(spaced).added[0]).toBe("scopes: read_own_subscription_contracts, read_orders, read_all_orders");
  });

  test("is accepted by the platform, which then sends the webhooks of both", () => {
    const app = new DeployedApp();
    app.deploy(merge(BILLING).text);
    const whole = appFiles(ADDRESS, "abc")["shopify.app.toml"] ?? "";
    expect(() => app.deploy(`${BILLING}\n${whole.slice(whole.indexOf("  [[webhooks"))}`)).toThrow("compliance topic");
    expect(app.file).toMatchObject({ application_url: "https://billing.example.com/", embedded: true } as object);
    expect(app.payloadFor("orders/updated", { id: 1, email: "a@example.com", updated_at: "now" })).toEqual({
      id: 1,
      updated_at: "now",
    });
  });

  test("changes nothing the second time, nor in a whole app of sds", () => {
    for (const text of [merge(BILLING).text, appFiles(ADDRESS, null)["shopify.app.toml"] ?? ""])
      expect(merge(text)).toMatchObject({ text, added: [] });
  });

  test("says that the platform's admin does not open a file of an earlier version, and writes no address itself", () => {
    const whole = appFiles(ADDRESS, "client")["shopify.app.toml"] ?? "";
    expect(merge(whole).notes).toEqual([]);
    const older = whole.replace(`application_url = "${ADDRESS}/app"`, `application_url = "${ADDRESS}"`);
    for (const text of [older, whole.replace("embedded = true", "embedded = false")]) {
      const { text: merged, notes } = merge(text);
      expect(merged).toBe(text);
      expect(notes).toEqual([expect.stringContaining(`does not open ${ADDRESS}/app in the platform's admin`)]);
    }
    expect(merge(BILLING).notes.join()).not.toContain("does not open");
  });

  test("adds updated_at to the fields of orders that an earlier version asked for", () => {
    const { text } = merge(BILLING);
    const earlier = text.replace(', "updated_at"]', "]");
    expect(merge(earlier)).toMatchObject({
      text: expect.stringMatching(/include_fields = \["id", "admin_graphql_api_id", "updated_at"\s?\]/),
      added: ["fields of orders/create, orders/paid, orders/updated, orders/cancelled: updated_at"],
    });
  });

  test("adds no compliance topic beside the older form", () => {
    const older = `${BILLING.replace('compliance_topics = [ "customers/redact" ]', 'topics = [ "a/b" ]')}
[webhooks.privacy_compliance]
customer_deletion_url = "https://billing.example.com/redact"
`;
    const { text, notes } = merge(older);
    expect(notes).toEqual([
      expect.stringMatching(/^the file sends customers\/data_request, customers\/redact, shop\/redact to/),
    ]);
    expect(text).not.toContain('"customers/redact"');
    new DeployedApp().deploy(text);
  });

  test("adds no scopes to an app that asks for them by itself", () => {
    const legacy = BILLING.replace(/scopes = ".*\n/, "use_legacy_install_flow = true\n");
    const { text, notes } = merge(legacy);
    expect(text).toStartWith(legacy);
    expect(notes).toContainEqual(expect.stringContaining("read_own_subscription_contracts,read_customers,read_orders"));
  });

  test.each([
    ["an inline table", `access_scopes = { scopes = "a" } # one\n[webhooks]\napi_version = "2026-07"\n`],
    ["dotted keys", `access_scopes.scopes = 'a' # one\nwebhooks.api_version = '2026-07'\n\n[build]\nx = 1\n`],
    ["lines that end with CRLF", `client_id = "a"\r\n[access_scopes]\r\nscopes = "a"\r\n`],
    ["a byte order mark and no line end", `\uFEFF[access_scopes]\nscopes = "a"`],
    ["dates of every form", `a = 1979-05-27T07:32:00Z\nb = 07:32:00\nc = 1e3\n[access_scopes]\nscopes = "a"\n`],
    ["nothing", ""],
  ])("keeps %s", (_name, before) => {
    const { text } = merge(before);
    const changed = lostLines(before, text).filter((line) => !/scopes/.test(line));
    expect(changed).toEqual([]);
    expect(merge(text).text).toBe(text);
    if (before.includes("\r")) expect(text.replaceAll("\r\n", "")).not.toContain("\n");
  });

  test.each([
    [
      "with a comma at its end",
      `[webhooks]\nsubscriptions = [\n  { topics = ["a/b"], uri = "/x" }, # one\n  # two\n]\n`,
    ],
    ["without", `[webhooks]\nsubscriptions = [ { topics = ["a/b"], uri = "/x" } ] # one\n`],
  ])("adds to a list of inline tables %s", (_name, before) => {
    const { text } = merge(before);
    const end = before.lastIndexOf("}");
    expect(text).toStartWith(before.slice(0, end));
    expect(text).toEndWith(before.slice(end + 2));
    expect(parsed(text).webhooks.subscriptions.map(({ uri }) => uri)).toEqual(["/x", URI, URI, URI]);
  });

  test("keeps any file of comments, spaces and tables", () => {
    const line = fc.constantFrom(
      "# a comment",
      "",
      "   ",
      "\t# [webhooks]",
      'x = """\n[webhooks]\n"""',
      "y = [ 1,\n # z\n ]",
    );
    const table = fc.constantFrom("[build]", "[pos]", "[auth]", "[[extra]]", "[ app_proxy ] # d", "[webhooks.more]");
    const part = fc
      .tuple(table, fc.uniqueArray(line, { selector: (text) => text[0] }))
      .map(([head, lines]) => [head, ...lines]);
    const anyFile = fc.uniqueArray(part, { selector: ([head]) => head, maxLength: 5 });
    fc.assert(
      fc.property(anyFile, fc.nat(5), (parts, at) => {
        const scopes = ["[access_scopes] # s", 'scopes="a"#b'];
        const before = [...parts.slice(0, at), scopes, ...parts.slice(at)].flat().join("\n");
        const { text } = merge(before);
        const joined = before.replace('"a"', `"a,${NEEDS.scopes.join(",")}"`);
        expect(text).toStartWith(joined);
        expect(merge(text).text).toBe(text);
      }),
    );
  });

  test("gives up on a file with very many places for a scope after 20 million characters", () => {
    const lines = Array.from({ length: 5_000 }, (_, index) => `k${index} = "a, and more text"`);
    const file = ["[extra]", ...lines, "[access_scopes]", 'scopes = "a"'].join("\n");
    const content = Bun.TOML.parse(file);
    // Parsing so many characters takes seconds, so only the file itself is parsed.
    using parse = spyOn(Bun.TOML, "parse").mockImplementation((text) => (text === file ? content : {}));
    expect(() => merge(file)).toThrow("cannot add to this file");
    const tried = parse.mock.calls.slice(1).reduce((sum, [text]) => sum + String(text).length, 0);
    expect(tried).toBeGreaterThan(19_000_000);
    expect(tried).toBeLessThanOrEqual(20_000_000);
  });

  test.each([
    ["is not TOML", "client_id = ", "it is not TOML: "],
    ["is of another app", 'client_id = "other"', "it is the file of the app other, but SDS_PLATFORM_CLIENT_ID is mine"],
    ["has no place for webhooks", 'webhooks = { api_version = "2026-07" }', "sds cannot add to this file"],
    ["has no list of webhooks", '[webhooks]\nsubscriptions = "all"', "webhooks.subscriptions is not a list"],
  ])("refuses a file that %s", (_what, text, message) => {
    expect(() => merge(text, { clientId: "mine" as never })).toThrow(message);
  });
});
