import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type EgressAllow, parseEndpoint } from "./domain/deliveries/endpoint.ts";
import { parseSmtpUrl, type SmtpServer } from "./domain/deliveries/smtp.ts";
import { invalid, isForbidden, messageOf } from "./domain/error.ts";
import { LOG_LEVELS, type LogLevel } from "./lib/log.ts";
import { isHttp, isPort, type Networks, parseHostAndPort, parseNetworks } from "./lib/networks.ts";
import { DAY_MS, parseDuration } from "./lib/time.ts";
import { rightsProblem } from "./lib/users.ts";

/** All settings, checked and frozen (docs/operating.md, "Settings"). */
export interface Config {
  data: string;
  /** Whether a copy of the SQLite database is kept when a new version of `sds` upgrades the database. */
  upgradeCopy: boolean;
  /** The shop for commands that do not name a shop; null if not set. */
  shop: string | null;
  host: string;
  port: number;
  /** Scheme, host and port in links to the settings page; null if not set. */
  publicUrl: string | null;
  /** URL at which the other nodes of the database reach this node; null if they cannot reach this node. */
  nodeUrl: string | null;
  /** Networks of proxies that are trusted to name the client's address. Proxies on this machine are always trusted. */
  trustedProxies: Networks;
  masterKeyFile: string;
  /** A PostgreSQL database; null for SQLite in the data folder. */
  database: DatabaseConfig | null;
  /** Base address of the platform; `{shop}` stands for a shop's domain. */
  platformUrl: string;
  platformClientId: string | null;
  /** File with the client secrets of the app, one on each line, newest first; null without a platform. */
  platformSecretFile: string | null;
  /** The wait after each attempt of a delivery, except the last attempt. */
  retryWaitsMs: readonly number[];
  deliveryTimeoutMs: number;
  /** Maximum number of delivery attempts at once, for all shops together. */
  deliveryConcurrency: number;
  /** Maximum number of webhook attempts at once for one shop. Its workflow triggers have a separate, equal limit. */
  deliveryPerShop: number;
  egressAllow: EgressAllow;
  /** Limit of requests with one API key; null for no limit. */
  rateLimit: RateLimit | null;
  /** How long delivered deliveries are kept. */
  keepDeliveredMs: number;
  /** URL to which alerts for the operator are posted; null if not set. A secret. */
  alertUrl: string | null;
  /** The file that names the mail server, for `readSmtpServer`; null if not set. */
  smtpUrlFile: string | null;
  /** Host and port at which the metrics are served; null if the metrics are off. */
  metrics: { host: string; port: number } | null;
  /** Whether each request is logged. */
  logRequests: boolean;
  logLevel: LogLevel;
}

export interface RateLimit {
  perSecond: number;
  /** Maximum number of requests that a key can make at once after a pause. */
  burst: number;
}

export interface DatabaseConfig {
  /** The database's address, which can contain a password. */
  url: string;
  /** The file with `url`; null if the address is not in a file. */
  file: string | null;
  /** libpq's password file, used if the address has no password; null if not set. */
  passwordFile: string | null;
  /** Address of a standby, from which `serve` reads pages; null if not set. */
  readUrl: string | null;
}

export interface Flags {
  data?: string;
  copy?: boolean;
  host?: string;
  port?: string;
}

export type Environment = Record<string, string | undefined>;

/** Reads the settings: a flag wins over the environment. @throws SdsError `invalid`, which names the setting */
export function readConfig(flags: Flags, env: Environment): Config {
  const egressAllow = readNetworks("SDS_EGRESS_ALLOW", env["SDS_EGRESS_ALLOW"] ?? "");
  const set = (name: string) => nonEmpty(name, env[name]);
  const data = resolve(nonEmpty("--data", flags.data) ?? set("SDS_DATA") ?? "./data");
  return Object.freeze({
    data,
    upgradeCopy: flags.copy ?? true,
    shop: set("SDS_SHOP") ?? null,
    host: nonEmpty("--host", flags.host) ?? set("SDS_HOST") ?? "127.0.0.1",
    port: readPort(flags, env),
    publicUrl: readOrigin("SDS_PUBLIC_URL", env["SDS_PUBLIC_URL"]),
    nodeUrl: readOrigin("SDS_NODE_URL", env["SDS_NODE_URL"]),
    trustedProxies: readNetworks("SDS_TRUSTED_PROXIES", env["SDS_TRUSTED_PROXIES"] ?? ""),
    masterKeyFile: resolve(set("SDS_MASTER_KEY_FILE") ?? join(data, "master.key")),
    database: readDatabase(env),
    platformUrl: readPlatformUrl(env["SDS_PLATFORM_URL"] ?? "https://{shop}"),
    platformClientId: set("SDS_PLATFORM_CLIENT_ID") ?? null,
    platformSecretFile: readSecretFile(env),
    retryWaitsMs: Object.freeze(
      (env["SDS_RETRY_WAITS"] ?? "2m,4m,8m,16m").split(",").map((part) => readDuration("SDS_RETRY_WAITS", part.trim())),
    ),
    deliveryTimeoutMs: readDuration("SDS_DELIVERY_TIMEOUT", env["SDS_DELIVERY_TIMEOUT"] ?? "10s"),
    deliveryConcurrency: readCount("SDS_DELIVERY_CONCURRENCY", env["SDS_DELIVERY_CONCURRENCY"] ?? "512"),
    deliveryPerShop: readCount("SDS_DELIVERY_PER_SHOP", env["SDS_DELIVERY_PER_SHOP"] ?? "4"),
    egressAllow,
    rateLimit: readRateLimit(env["SDS_RATE_LIMIT"]),
    keepDeliveredMs: readRetention("SDS_KEEP_DELIVERED", env["SDS_KEEP_DELIVERED"] ?? "30d"),
    alertUrl: readAlertUrl(env, egressAllow),
    smtpUrlFile: readSmtpUrlFile(env),
    metrics: readMetrics(env["SDS_METRICS"]),
    logRequests: readSwitch("SDS_LOG_REQUESTS", env["SDS_LOG_REQUESTS"] ?? "0"),
    logLevel: readLogLevel(env),
  });
}

function nonEmpty(name: string, value: string | undefined): string | undefined {
  if (value === undefined || value.trim() !== "") return value;
  throw invalid(`${name} is empty`);
}

function readPort(flags: Flags, env: Environment): number {
  const [name, text] = flags.port === undefined ? ["SDS_PORT", env["SDS_PORT"] ?? "8080"] : ["--port", flags.port];
  if (isPort(text)) return Number(text);
  throw invalid(`${name} is "${text}": it must be a port from 0 to 65535`);
}

function readMetrics(text: string | undefined): Config["metrics"] {
  const address = text === undefined ? null : parseHostAndPort(text);
  if (address !== undefined) return address;
  throw invalid(`SDS_METRICS is "${text}": it must be HOST:PORT, like 127.0.0.1:9464 or [::1]:9464`);
}

function readSwitch(name: string, text: string): boolean {
  if (text === "0" || text === "1") return text === "1";
  throw invalid(`${name} is "${text}": it must be 0 or 1`);
}

/** Refuses an address with a path, because cookies and links of the settings page begin at /admin. */
function readOrigin(name: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  const url = URL.parse(text);
  const isOrigin = isHttp(url) && text.replace(/\/$/, "").toLowerCase() === url.origin;
  if (isOrigin) return url.origin;
  throw invalid(`${name} is "${text}": it must be an address like https://sds.example.com, without a path`);
}

/** Reads the database's address, which the engine checks later. No message contains the address or its password. */
function readDatabase(env: Environment): DatabaseConfig | null {
  const url = nonEmpty("SDS_DATABASE_URL", env["SDS_DATABASE_URL"]);
  const file = nonEmpty("SDS_DATABASE_URL_FILE", env["SDS_DATABASE_URL_FILE"]);
  if (url !== undefined && file !== undefined) throw invalid("set SDS_DATABASE_URL or SDS_DATABASE_URL_FILE, not both");
  if (file !== undefined)
    return { ...databaseAt(readAddressFile("SDS_DATABASE_URL_FILE", file), env), file: resolve(file) };
  if (url === undefined && nonEmpty("SDS_DATABASE_READ_URL", env["SDS_DATABASE_READ_URL"]) !== undefined)
    throw invalid("SDS_DATABASE_READ_URL names a standby: set SDS_DATABASE_URL too, for the primary");
  return url === undefined ? null : databaseAt(url, env);
}

function databaseAt(url: string, env: Environment): DatabaseConfig {
  const setting = (name: string) => nonEmpty(name, env[name]) ?? null;
  return { url, file: null, passwordFile: setting("PGPASSFILE"), readUrl: setting("SDS_DATABASE_READ_URL") };
}

/** Reads a database's address from a file. @param name the setting or flag, for messages @throws SdsError `invalid` */
export function readAddressFile(name: string, file: string): string {
  const text = readTextFile(name, file);
  if (text === "") throw invalid(`${name} ${file} is empty`);
  return text;
}

/** The trimmed text of a file. @param name the setting, for messages @throws SdsError `invalid` */
export function readTextFile(name: string, file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (thrown) {
    const reason = isForbidden(thrown) ? rightsProblem(file) : messageOf(thrown);
    throw invalid(`${name} cannot be read: ${reason}`, thrown);
  }
}

/**
 * Reads the target of `sds copy`. Messages do not repeat the target, because it may hold a password.
 * @throws SdsError `invalid`
 */
export function readCopyTarget(text: string, env: Environment): DatabaseConfig | { folder: string } {
  const [, folder] = /^sqlite:(.+)$/s.exec(text) ?? [];
  if (folder !== undefined) return { folder: resolve(folder) };
  if (/^postgres(ql)?:/.test(text)) return databaseAt(text, env);
  throw invalid("--to must be postgres://USER@HOST/DATABASE or sqlite:FOLDER");
}

function readDuration(name: string, text: string): number {
  const durationMs = parseDuration(text);
  if (durationMs !== undefined && durationMs > 0 && durationMs <= DAY_MS) return durationMs;
  throw invalid(`${name} contains "${text}": it must be a duration up to a day, like 500ms, 10s, 2m or 1h`);
}

const MAX_RETENTION_MS = 3_650 * DAY_MS;

/** The minimum is a day, because the log must still have a delivery when somebody complains about the delivery. */
function readRetention(name: string, text: string): number {
  const retentionMs = parseDuration(text);
  if (retentionMs !== undefined && retentionMs >= DAY_MS && retentionMs <= MAX_RETENTION_MS) return retentionMs;
  throw invalid(`${name} is "${text}": it must be a duration from a day to ten years, like 7d or 30d`);
}

function readCount(name: string, text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) > 0) return Number(text);
  throw invalid(`${name} is "${text}": it must be a whole number from 1 to 99999`);
}

function readRateLimit(text: string | undefined): RateLimit | null {
  if (text === undefined) return null;
  const [, perSecond, burst] = /^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? [];
  const limit = { perSecond: Number(perSecond ?? 0), burst: Number(burst ?? 0) };
  if (limit.perSecond > 0 && limit.burst > 0) return limit;
  throw invalid(`SDS_RATE_LIMIT is "${text}": it must be requests a second and at once, like 100/200, from 1 to 99999`);
}

function readNetworks(name: string, text: string): Networks {
  try {
    return parseNetworks(text);
  } catch (thrown) {
    throw invalid(`${name} is "${text}": it must be CIDRs like 10.0.0.0/8, separated by commas`, thrown);
  }
}

/** Reads the address for alerts. No message contains the address, because chat programs put a secret in it. */
function readAlertUrl(env: Environment, allow: EgressAllow): string | null {
  const url = nonEmpty("SDS_ALERT_URL", env["SDS_ALERT_URL"]);
  if (url === undefined) return null;
  const parsed = parseEndpoint(url, allow);
  if ("refused" in parsed) throw invalid(`SDS_ALERT_URL is not accepted: ${parsed.refused}`);
  return url;
}

function readSmtpUrlFile(env: Environment): string | null {
  const file = nonEmpty("SDS_SMTP_URL_FILE", env["SDS_SMTP_URL_FILE"]);
  if (file !== undefined) readSmtpServer(file);
  return file === undefined ? null : resolve(file);
}

/** Reads the mail server from a file that can change. @throws SdsError `invalid`, which does not show the password */
export function readSmtpServer(file: string): SmtpServer {
  return parseSmtpUrl("SDS_SMTP_URL_FILE", readTextFile("SDS_SMTP_URL_FILE", file));
}

function readLogLevel(env: Environment): LogLevel {
  const text = env["SDS_LOG"] ?? "info";
  const level = LOG_LEVELS.find((known) => known === text);
  if (level !== undefined) return level;
  throw invalid(`SDS_LOG is "${text}": it must be one of ${LOG_LEVELS.join(", ")}`);
}

/** The address must be valid after a shop's domain replaces `{shop}`. */
function readPlatformUrl(text: string): string {
  const url = URL.parse(text.replaceAll("{shop}", "shop.example.com"));
  const isPlain = isHttp(url) && url.username === "" && /^[\x21-\x7e]+$/.test(text) && !/[?#\\]/.test(text);
  if (isPlain) return text;
  // The message does not repeat the text, because it may contain a password.
  throw invalid("SDS_PLATFORM_URL must be an address like https://{shop}, without user, query or fragment");
}

function readSecretFile(env: Environment): string | null {
  const path = nonEmpty("SDS_PLATFORM_SECRET_FILE", env["SDS_PLATFORM_SECRET_FILE"]);
  if (path === undefined) return null;
  if (readTextFile("SDS_PLATFORM_SECRET_FILE", path) !== "") return resolve(path);
  throw invalid(`SDS_PLATFORM_SECRET_FILE ${path} is empty: it must hold the app's client secrets, one on each line`);
}
