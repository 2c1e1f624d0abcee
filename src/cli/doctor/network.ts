import { connect as connectTcp } from "node:net";
import { findUnreachable } from "../../delivery/handshake.ts";
import { browsable, connectReason, httpAddress } from "../../lib/networks.ts";
import { createSlots } from "../../lib/slots.ts";
import { apiUrls } from "../../shopify/api/address.ts";
import type { Checkup } from "../../store/port/checkup.ts";
import { type Check, type DataCheck, type Finding, failed, type Patient, passed } from "./check.ts";

const ANSWER_MS = 3_000;
/** Maximum number of endpoints to try. Ten endpoints are tried at once, so all of them take at most 2 * ANSWER_MS. */
const MAX_ENDPOINTS = 20;
const ENDPOINTS_AT_ONCE = 10;
/**
 * Allowed difference to the platform's clock, which decides when tokens expire. The platform's Date header has whole
 * seconds.
 */
const PLATFORM_CLOCK_MS = 10_000;
/** Allowed difference to the database server's clock. Each node checks the leases of deliveries with its own clock. */
const SERVER_CLOCK_MS = 2_000;
const SET_CLOCK = "let NTP set the clock of this machine, for instance with systemd-timesyncd or chrony";

export const NETWORK_CHECKS: readonly Check[] = [
  { name: "port", run: checkPort },
  { name: "metrics port", run: checkMetricsPort },
  { name: "private addresses", run: checkEgress },
];

export const REMOTE_CHECKS: readonly DataCheck[] = [
  { name: "clock", run: checkClock },
  { name: "platform", run: checkPlatform },
  { name: "endpoints", run: checkEndpoints },
];

async function checkPort({ config: { host, port }, opened, fetch }: Patient): Promise<Finding> {
  if (port === 0) return passed("serve takes any free port");
  const serves = "checkup" in opened && opened.checkup.schema.isCurrent ? await opened.checkup.serves() : undefined;
  // Only the port is compared: with a flag, `serve` can listen on a host that is not in the settings.
  const isNoted = serves?.some((serve) => serve.address.endsWith(`:${port}`)) ?? true;
  const isSds = async (address: string) => (await readStart(`${address}/healthz`, fetch)) === '{"status":"ok"}';
  return checkListener({ host, port, setting: "SDS_PORT", isNoted, isSds });
}

async function checkMetricsPort({ config: { metrics }, fetch }: Patient): Promise<Finding> {
  if (metrics === null) return passed("SDS_METRICS is not set");
  const isSds = async (address: string) => (await readStart(`${address}/metrics`, fetch)).includes("sds_build_info");
  return checkListener({ ...metrics, setting: "SDS_METRICS", isNoted: true, isSds });
}

interface Listener {
  host: string;
  port: number;
  setting: string;
  /** Whether a `serve` has recorded an address with this port in the database. */
  isNoted: boolean;
  isSds(address: string): Promise<boolean>;
}

/** Checks whether the port is free, or is used by the right program. */
async function checkListener({ host, port, setting, isNoted, isSds }: Listener): Promise<Finding> {
  const name = `port ${port} of ${host}`;
  const address = browsable(httpAddress(host, port));
  if (!(await isListening(new URL(address).hostname.replace(/^\[|\]$/g, ""), port))) return passed(`${name} is free`);
  const isAnswering = await isSds(address);
  if (isNoted && isAnswering) return passed(`\`sds serve\` uses ${name}`);
  const other = isAnswering ? "`sds serve` of other data" : "another program, or a `serve` that hangs,";
  return failed(`${other} uses ${name}`, `stop that program, or choose another port with ${setting}`);
}

/** Whether a program accepts connections. Connects instead of listening, because a starting `serve` needs the port. */
function isListening(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connectTcp({ host, port, timeout: ANSWER_MS });
  socket.once("connect", () => resolve(true));
  socket.once("timeout", () => resolve(false));
  socket.on("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}

/** Returns the first bytes of an answer; "" if there is no answer. */
async function readStart(url: string, fetch: Patient["fetch"]): Promise<string> {
  try {
    const { body } = await fetch(url, plainRequest("GET"));
    for await (const bytes of body ?? []) return Buffer.from(bytes).toString("latin1");
  } catch {
    // The port belongs to a program that does not speak HTTP.
  }
  return "";
}

function plainRequest(method: string): RequestInit {
  return { method, redirect: "manual", signal: AbortSignal.timeout(ANSWER_MS), proxy: false } as RequestInit;
}

function checkEgress({ config }: Patient): Finding {
  if (config.egressAllow.length === 0) return passed("webhooks go to public addresses only");
  return failed(
    "SDS_EGRESS_ALLOW is set: webhooks may go to private addresses, and without TLS",
    "remove the setting, unless all your endpoints are in a network of your own",
  );
}

/** A clock. `aheadMs` is its minimum lead over our clock; negative if the clock is behind, null if unknown. */
interface ReadClock {
  name: string;
  allowedMs: number;
  aheadMs: number | null;
}

async function checkClock(checkup: Checkup, patient: Patient): Promise<Finding> {
  const clocks = [await readServerClock(checkup, patient), await readPlatformClock(checkup, patient)];
  const known = clocks.filter(({ aheadMs }) => aheadMs !== null);
  const wrong = known.find(({ aheadMs, allowedMs }) => Math.abs(aheadMs ?? 0) > allowedMs);
  if (wrong !== undefined) {
    const seconds = Math.round(Math.abs(wrong.aheadMs ?? 0) / 1_000).toLocaleString("en");
    const side = (wrong.aheadMs ?? 0) > 0 ? "behind" : "ahead of";
    return failed(`the clock of this machine is ${seconds} seconds ${side} ${wrong.name}`, SET_CLOCK);
  }
  if (known.length === 0) return passed("not compared: no connected shop's platform answers");
  return passed(`as ${known.map(({ name }) => name).join(" and ")}`);
}

async function readServerClock(checkup: Checkup, { now }: Patient): Promise<ReadClock> {
  const askedAt = now();
  const time = await checkup.clock();
  const aheadMs = time === null ? null : leastDifference(time, time, askedAt, now());
  return { name: "the database server", allowedMs: SERVER_CLOCK_MS, aheadMs };
}

async function readPlatformClock({ shops }: Checkup, patient: Patient): Promise<ReadClock> {
  const domain = await shops.connectedDomain();
  const askedAt = patient.now();
  const answer = domain === undefined ? undefined : await askPlatform(domain, patient).catch(() => undefined);
  const date = Date.parse(answer?.headers.get("date") ?? "");
  const aheadMs = Number.isNaN(date) ? null : leastDifference(date, date + 1_000, askedAt, patient.now());
  return { name: "the platform", allowedMs: PLATFORM_CLOCK_MS, aheadMs };
}

/** Returns the minimum difference of the clocks. The exact difference is unknown, because the response took time. */
function leastDifference(earliest: number, latest: number, askedAt: number, answeredAt: number): number {
  return earliest > answeredAt ? earliest - answeredAt : Math.min(latest - askedAt, 0);
}

async function checkPlatform({ shops }: Checkup, patient: Patient): Promise<Finding> {
  const domain = await shops.connectedDomain();
  if (domain === undefined) return passed("not asked: no shop is connected");
  try {
    await askPlatform(domain, patient);
    return passed("it answers");
  } catch (thrown) {
    const isLate = thrown instanceof Error && thrown.name === "TimeoutError";
    return failed(
      `the platform cannot be reached: ${isLate ? "it does not answer" : connectReason(thrown)}`,
      "check the network, the name look-up and the firewall of this machine for outgoing connections to port 443",
    );
  }
}

/** Sends the platform a request without a token. The request asks for no data. */
function askPlatform(domain: string, { config, fetch }: Patient): Promise<Response> {
  const { origin } = new URL(apiUrls(config.platformUrl, domain).graphql);
  return fetch(`${origin}/`, plainRequest("HEAD"));
}

async function checkEndpoints(checkup: Checkup, patient: Patient): Promise<Finding> {
  const { config, resolve, connect } = patient;
  const { count, endpoints } = await checkup.shops.endpoints();
  if (count === 0) return passed("no shop has an endpoint");
  // Endpoints of several shops can have the same host. Each host is tried once.
  const hosts = new Map(endpoints.map((each) => [URL.parse(each.url)?.host ?? "an unreadable address", each]));
  const tried = [...hosts].slice(0, MAX_ENDPOINTS);
  const slots = createSlots(ENDPOINTS_AT_ONCE);
  const settings = { resolve, connect, allow: config.egressAllow, timeoutMs: ANSWER_MS };
  const reasons = await Promise.all(
    tried.map(([host, { url, domain }]) =>
      slots.run(async () => ({ name: `${host} of ${domain}`, reason: await findUnreachable(url, settings) })),
    ),
  );
  const dead = reasons.filter(({ reason }) => reason !== undefined);
  const isSample = hosts.size > tried.length || count > endpoints.length;
  const share = isSample
    ? `; ${tried.length} of ${count.toLocaleString("en")} were tried, those that fail first`
    : `; all ${count} were tried`;
  const all = count === 1 ? "" : share;
  const [first] = dead;
  if (first === undefined) return passed(`${count === 1 ? "it answers" : "they answer"}${all}`);
  const names = dead.slice(0, 3).map(({ name }) => name);
  const which = dead.length === 1 ? first.name : `${dead.length} endpoints, such as ${names.join(", ")}`;
  return failed(
    `${which}: ${first.reason}${all}`,
    "tell the developer of the endpoint, or correct its URL with `sds webhook set --url`; then run " +
      "`sds delivery retry --dead`",
  );
}
