import { expect, test } from "bun:test";
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { secretFiles, secretFileWarnings } from "../src/cli/secret-files.ts";
import { readConfig } from "../src/config.ts";
import type { Networks } from "../src/lib/networks.ts";
import { temporaryFolder } from "./support/app.ts";

function fileWith(text: string): string {
  const path = join(temporaryFolder(), "secret");
  writeFileSync(path, text);
  return path;
}

test("every secret file that each user may read or write is warned of, and no other file", () => {
  const files = [0o644, 0o602, 0o640, 0o600, 0o644, 0o644].map((mode) => {
    const file = fileWith("postgres://sds@/sds");
    chmodSync(file, mode);
    return file;
  });
  const [masterKey = "", writable = "", ofGroup = "", own = "", address = "", passwords = ""] = files;
  const warning = (file: string) => `every user of this machine can read or change ${file}: run chmod 600 ${file}`;
  const unreachable = join(temporaryFolder(), "loop");
  symlinkSync(unreachable, unreachable);
  expect(secretFileWarnings(masterKey, writable, ofGroup, own, undefined, null, "/none", unreachable)).toEqual([
    warning(masterKey),
    warning(writable),
  ]);
  const env = { SDS_MASTER_KEY_FILE: own, SDS_DATABASE_URL_FILE: address, PGPASSFILE: passwords };
  expect(secretFiles(readConfig({}, env))).toEqual([warning(address), warning(passwords)]);
});

test("without flags and environment, all settings have their documented defaults", () => {
  expect(readConfig({}, {})).toEqual({
    upgradeCopy: true,
    data: resolve("data"),
    shop: null,
    host: "127.0.0.1",
    port: 8080,
    publicUrl: null,
    nodeUrl: null,
    trustedProxies: [],
    masterKeyFile: resolve("data/master.key"),
    database: null,
    platformUrl: "https://{shop}",
    platformClientId: null,
    platformSecretFile: null,
    retryWaitsMs: [120_000, 240_000, 480_000, 960_000],
    deliveryTimeoutMs: 10_000,
    deliveryConcurrency: 512,
    deliveryPerShop: 4,
    egressAllow: [],
    rateLimit: null,
    keepDeliveredMs: 30 * 86_400_000,
    alertUrl: null,
    smtpUrlFile: null,
    metrics: null,
    logRequests: false,
    logLevel: "info",
  });
});

test("a standby is an addition to a primary", () => {
  const [url, readUrl] = ["postgres://sds@db/sds", "postgres://sds@standby/sds"];
  expect(readConfig({}, { SDS_DATABASE_URL: url }).database).toMatchObject({ url, readUrl: null });
  const env = { SDS_DATABASE_URL: url, SDS_DATABASE_READ_URL: readUrl };
  expect(readConfig({}, env).database).toMatchObject({ url, readUrl });
  expect(() => readConfig({}, { SDS_DATABASE_READ_URL: readUrl })).toThrow(
    "SDS_DATABASE_READ_URL names a standby: set SDS_DATABASE_URL too, for the primary",
  );
});

test("a flag wins over the environment", () => {
  const env = { SDS_DATA: "/env", SDS_HOST: "0.0.0.0", SDS_PORT: "1" };
  expect(readConfig({}, env)).toMatchObject({
    data: "/env",
    masterKeyFile: "/env/master.key",
    host: "0.0.0.0",
    port: 1,
  });
  expect(readConfig({ data: "/flag", host: "::1", port: "2" }, env)).toMatchObject({
    data: "/flag",
    masterKeyFile: "/flag/master.key",
    host: "::1",
    port: 2,
  });
});

test("the smallest and the largest value of each setting are accepted", () => {
  expect(readConfig({ port: "0" }, {}).port).toBe(0);
  expect(readConfig({ port: "65535" }, {}).port).toBe(65_535);
  expect(readConfig({}, { SDS_DELIVERY_PER_SHOP: "1", SDS_DELIVERY_CONCURRENCY: "99999" })).toMatchObject({
    deliveryPerShop: 1,
    deliveryConcurrency: 99_999,
  });
  expect(readConfig({}, { SDS_DELIVERY_TIMEOUT: "1ms", SDS_RETRY_WAITS: "24h, 1s" })).toMatchObject({
    deliveryTimeoutMs: 1,
    retryWaitsMs: [86_400_000, 1_000],
  });
});

test.each([
  ["127.0.0.1:9464", { host: "127.0.0.1", port: 9464 }],
  ["[::1]:0", { host: "::1", port: 0 }],
  ["localhost:65535", { host: "localhost", port: 65_535 }],
])("SDS_METRICS=%s", (text, metrics) => {
  expect(readConfig({}, { SDS_METRICS: text, SDS_LOG_REQUESTS: "1" })).toMatchObject({ metrics, logRequests: true });
});

test("addresses, files and the log level are read", () => {
  const secretFile = fileWith("new\nold\n");
  const config = readConfig(
    {},
    {
      SDS_PUBLIC_URL: "https://SDS.example.com/",
      SDS_MASTER_KEY_FILE: "/keys/master",
      SDS_PLATFORM_URL: "http://127.0.0.1:9/{shop}",
      SDS_PLATFORM_CLIENT_ID: "client",
      SDS_PLATFORM_SECRET_FILE: secretFile,
      SDS_EGRESS_ALLOW: "10.0.0.0/8, ::1/128",
      SDS_TRUSTED_PROXIES: "10.0.0.7/32,fd00::/8",
      SDS_LOG: "debug",
    },
  );
  expect(config).toMatchObject({
    publicUrl: "https://sds.example.com",
    masterKeyFile: "/keys/master",
    platformUrl: "http://127.0.0.1:9/{shop}",
    platformClientId: "client",
    platformSecretFile: secretFile,
    logLevel: "debug",
  });
  const cidrs = (networks: Networks) => networks.map(([network, bits]) => `${network}/${bits}`);
  expect(cidrs(config.egressAllow)).toEqual(["10.0.0.0/8", "::1/128"]);
  expect(cidrs(config.trustedProxies)).toEqual(["10.0.0.7/32", "fd00::/8"]);
});

test.each<[Record<string, string>, string]>([
  [{ SDS_DATA: " " }, "SDS_DATA is empty"],
  ...[
    "SDS_DATA",
    "SDS_SHOP",
    "SDS_HOST",
    "SDS_MASTER_KEY_FILE",
    "SDS_DATABASE_URL",
    "SDS_DATABASE_URL_FILE",
    "SDS_DATABASE_READ_URL",
    "SDS_PLATFORM_CLIENT_ID",
    "SDS_PLATFORM_SECRET_FILE",
    "SDS_ALERT_URL",
    "SDS_SMTP_URL_FILE",
  ].map((name): [Record<string, string>, string] => [{ [name]: "" }, `${name} is empty`]),
  [{ SDS_PORT: "65536" }, 'SDS_PORT is "65536"'],
  [{ SDS_PORT: "-1" }, 'SDS_PORT is "-1"'],
  [{ SDS_PUBLIC_URL: "https://sds.example.com/path" }, "SDS_PUBLIC_URL is"],
  [{ SDS_PUBLIC_URL: "ftp://sds.example.com" }, "SDS_PUBLIC_URL is"],
  [{ SDS_RETRY_WAITS: "2m,,4m" }, 'SDS_RETRY_WAITS contains ""'],
  [{ SDS_DELIVERY_TIMEOUT: "0s" }, 'SDS_DELIVERY_TIMEOUT contains "0s"'],
  [{ SDS_DELIVERY_TIMEOUT: "25h" }, 'SDS_DELIVERY_TIMEOUT contains "25h"'],
  [{ SDS_DELIVERY_CONCURRENCY: "0" }, 'SDS_DELIVERY_CONCURRENCY is "0"'],
  [{ SDS_DELIVERY_CONCURRENCY: "100000" }, 'SDS_DELIVERY_CONCURRENCY is "100000"'],
  [{ SDS_DELIVERY_PER_SHOP: "many" }, 'SDS_DELIVERY_PER_SHOP is "many"'],
  [{ SDS_EGRESS_ALLOW: "10.0.0.0" }, 'SDS_EGRESS_ALLOW is "10.0.0.0"'],
  [{ SDS_TRUSTED_PROXIES: "10.0.0.1" }, 'SDS_TRUSTED_PROXIES is "10.0.0.1": it must be CIDRs'],
  [{ SDS_TRUSTED_PROXIES: "lb.example.com" }, "SDS_TRUSTED_PROXIES is"],
  [{ SDS_LOG: "loud" }, 'SDS_LOG is "loud"'],
  [{ SDS_LOG_REQUESTS: "yes" }, 'SDS_LOG_REQUESTS is "yes": it must be 0 or 1'],
  ...["9464", ":9464", "localhost", "::1:9464", "127.0.0.1:65536", "http://127.0.0.1:9464", "[::1]", "a b:1"].map(
    (text): [Record<string, string>, string] => [
      { SDS_METRICS: text },
      `SDS_METRICS is "${text}": it must be HOST:PORT`,
    ],
  ),
  [{ SDS_PLATFORM_URL: "https://{shop}?a" }, "SDS_PLATFORM_URL must be"],
  [{ SDS_PLATFORM_URL: "ftp://{shop}" }, "SDS_PLATFORM_URL must be"],
  ...["SDS_DATABASE_URL_FILE", "SDS_PLATFORM_SECRET_FILE", "SDS_SMTP_URL_FILE"].map(
    (name): [Record<string, string>, string] => [{ [name]: "/nowhere/secret" }, `${name} cannot be read`],
  ),
  [{ SDS_PUBLIC_URL: "" }, 'SDS_PUBLIC_URL is ""'],
  [{ SDS_NODE_URL: "" }, 'SDS_NODE_URL is ""'],
  [{ SDS_DATABASE_URL: "postgres://sds@/sds", PGPASSFILE: "" }, "PGPASSFILE is empty"],
])("%o is refused by name", (env, message) => {
  expect(() => readConfig({}, env)).toThrow(message);
});

test("a platform address with a password is refused without repeating it", () => {
  const read = () => readConfig({}, { SDS_PLATFORM_URL: "https://user:hidden@{shop}" });
  expect(read).toThrow("SDS_PLATFORM_URL must be");
  expect(read).not.toThrow("hidden");
});

test("an invalid mail server URL is refused, and the error does not repeat it", () => {
  const read = () => readConfig({}, { SDS_SMTP_URL_FILE: fileWith("hidden@mail") });
  expect(read).toThrow("SDS_SMTP_URL_FILE holds no address");
  expect(read).not.toThrow("hidden");
});

test("an empty secret file is refused", () => {
  expect(() => readConfig({}, { SDS_PLATFORM_SECRET_FILE: fileWith("\n") })).toThrow(
    "is empty: it must hold the app's client secret",
  );
});
