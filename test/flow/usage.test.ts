import { describe, expect, test } from "bun:test";
import { failure, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";
const WAYS = "with one of --client-credentials, --app-key-file, --token-stdin and --refresh-token-stdin";
const NO_DOMAIN = "is not a shop's domain: write it in lower case as the platform does, like alpha.myshopify.com";
const LABEL = "the label must have 1 to 200 characters and no control or invisible characters";

describe("usage", () => {
  test.each([
    [["shop", "add", DOMAIN, "--plam", "pro"], "unknown option '--plam' (Did you mean --plan?)"],
    [["shop", "lst"], "unknown command 'lst' (Did you mean list?)"],
    [["shop", "add"], "missing required argument 'domain'; usage: sds shop add [options] <domain>"],
    [["shop", "add", "a.myshopfy.com"], '"a.myshopfy.com" is not a shop\'s domain: did you mean a.myshopify.com?'],
    [
      ["shop", "add", DOMAIN, "more"],
      "too many arguments for 'add'. Expected 1 argument but got 2: alpha.myshopify.com, more.",
    ],
    [["shop", "add", "Alpha.myshopify.com"], `"Alpha.myshopify.com" ${NO_DOMAIN}`],
    [["shop", "add", "alpha"], `"alpha" ${NO_DOMAIN}`],
    [["shop", "connect", "Alpha", "--client-credentials"], `"Alpha" ${NO_DOMAIN}`],
    [["shop", "add", DOMAIN, "--plan", "gold"], '"gold" is not a plan: choose pro, free, free+addon'],
    [["shop", "add", DOMAIN, "--currency", "usd"], '"usd" is not a currency: write its ISO 4217 code, like USD'],
    [["shop", "set", DOMAIN], "say what to change: --plan, --currency, --retry-days, --credit-title or --triggers"],
    [["key", "create"], "required option '--label <text>' not specified; usage: sds key create [options]"],
    [["key", "create", "--label", " "], LABEL],
    [["key", "create", "--label", "a\u001b[31m"], LABEL],
    [["key", "import", "--label", "A", "--legacy"], "the key must be cad_pk_ and 48 lower-case hexadecimal digits"],
    [["shop", "connect", DOMAIN, "--client-credentials", "--token-stdin"], `say how to connect: ${WAYS}`],
    [["shop", "connect", DOMAIN], `say how to connect: ${WAYS}`],
    [["shop", "connect", DOMAIN, "--token-stdin"], "stdin has no token: it must be one line without spaces"],
    [["delivery", "retry"], "name one delivery by its id, or use --dead"],
    [["delivery", "retry", "whd_x", "--dead"], "name one delivery by its id, or use --dead"],
    [["delivery", "retry", "whd_x", "--since", "1h"], "--since and --yes can only be used with --dead"],
    [["delivery", "retry", "whd_x", "--yes"], "--since and --yes can only be used with --dead"],
    [
      ["delivery", "retry", "--dead", "--since", "x"],
      '--since is "x": it must be a date like 2026-01-31T09:30:00Z or an age like 2h',
    ],
    [["delivery", "list", "--limit", "0"], '--limit is "0": it must be a whole number from 1 to 10000'],
    [["delivery", "list", "--status", "x"], '--status is "x": it must be one of pending, retrying, delivered, dead'],
    [["delivery", "list", "--kind", "x"], '--kind is "x": it must be one of webhook, trigger'],
    [["inbox", "retry"], "name one item of the inbox by its id, or use --failed"],
    [["sync", "--since", "1h", "--events"], "--since always queues events: leave out --events"],
    [["sync", "--since", "1h", "--pages"], "--since always reads pages: leave out --pages"],
    [["inbox", "retry", "1", "--failed"], "name one item of the inbox by its id, or use --failed"],
    [["listen", "--port", "65536"], '--port is "65536": it must be a port from 0 to 65535'],
    [["listen", "--forward", "nowhere"], '--forward is "nowhere": it must be a URL'],
    [["customer", "export", "ada"], '"ada" is not a customer\'s gid: write it like gid://shopify/Customer/7'],
    [
      ["platform", "files", "app", "--url", "http://sds.example.com"],
      '--url is "http://sds.example.com": it must be an https address, like https://sds.example.com',
    ],
    [["serve", "--port", "http"], '--port is "http": it must be a port from 0 to 65535'],
    [["serve", "--port", "65536"], '--port is "65536": it must be a port from 0 to 65535'],
    [["--data", "", "shop", "list"], "--data is empty"],
  ])("%j ends with 2", async (args, message) => {
    expect(await new Program().run(args)).toEqual(failure(2, message));
  });

  test.each([
    ["SDS_PORT", "x", 'SDS_PORT is "x": it must be a port from 0 to 65535'],
    ["SDS_LOG", "loud", 'SDS_LOG is "loud": it must be one of debug, info, warn, error'],
    [
      "SDS_PLATFORM_SECRET_FILE",
      "/nowhere/at/all",
      "SDS_PLATFORM_SECRET_FILE cannot be read: /nowhere/at/all does not exist: check the path",
    ],
    ["SDS_DATA", "", "SDS_DATA is empty"],
  ])("%s=%s ends with 2", async (name, value, message) => {
    expect(await new Program().run(["serve"], { env: { [name]: value } })).toEqual(failure(2, message));
  });

  test("help has no colours if stdout is not a terminal, and a command line without a command ends with 2", async () => {
    const program = new Program();
    const { status, stdout, stderr } = await program.run(["shop", "add", "--help"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain("$ sds shop add");
    expect(stdout).not.toContain("\u001b");
    for (const args of [[], ["shop"]]) expect((await program.run(args)).status).toBe(2);
  });
});

test("with --json an error is also JSON on stdout, and the line on stderr stays", async () => {
  const program = await Program.withShop();
  for (const [args, code, status, message] of [
    [["key", "revoke", "cad_pk_0000", "--json"], "not_found", 3, "there is no key cad_pk_0000"],
    [["delivery", "list", "--limit", "x", "--json"], "invalid", 2, '--limit is "x"'],
    [["key", "create", "--json"], "invalid", 2, "required option '--label <text>' not specified"],
    [
      ["shop", "remove", "beta.myshopify.com", "--yes", "--json"],
      "not_found",
      3,
      "there is no shop beta.myshopify.com",
    ],
  ] as const) {
    const result = await program.run([...args]);
    const { error } = JSON.parse(result.stdout);
    expect({ ...result, stdout: error.code }).toEqual({ status, stdout: code, stderr: `sds: ${error.message}\n` });
    expect(error.message).toStartWith(message);
  }
});

test("help names a command in one word or more", async () => {
  const program = await Program.withShop();
  const { stdout } = await program.run(["help", "webhook", "set"]);
  expect(stdout).toStartWith("Usage: sds webhook set");
  expect(await program.run(["webhook", "set", "--help"])).toEqual({ status: 0, stdout, stderr: "" });
});

test("version prints the versions of the program, of Bun and of SQLite", async () => {
  const program = new Program();
  expect(await program.json(["version"])).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    bun: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    sqlite: expect.stringMatching(/^3\.\d+\.\d+$/),
  });
});

test("a misspelt topic or shop is refused with the one that was probably meant", async () => {
  const program = await Program.withShop();
  const topics = ["webhook", "set", "--topics", "order.charge"];
  expect((await program.run(topics)).stderr).toContain('"order.charge" is not a topic (did you mean order.charged?)');
  expect(await program.run(["shop", "show", "alhpa.myshopify.com"])).toEqual(
    failure(3, `there is no shop alhpa.myshopify.com (did you mean ${DOMAIN}?)`),
  );
});
