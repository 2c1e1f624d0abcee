import type { IncomingMessage } from "node:http";
import type { BulkBehaviour } from "./bulk-operations.ts";
import type { ContractInput } from "./contract-changes.ts";
import type { Consent, CustomerInput } from "./customer-changes.ts";
import { type Answer, json } from "./http.ts";
import type { FinancialStatus, Kind } from "./rows.ts";
import type { Seeding } from "./seed.ts";
import type { PlatformShop } from "./shop.ts";
import type { FieldFaultCode, ShopOptions } from "./shop-options.ts";
import type { StandIn } from "./stand-in.ts";

/** The fields of all changes. Nothing is checked, because the caller is a test or a bench. */
interface ChangeFields extends CustomerInput, ContractInput, Seeding {
  id: string;
  consent: Consent;
  marketing: Consent;
  date: string;
  index: number;
  quantities: number[];
  ids: string[];
  list: ContractInput[];
  bulk: Partial<BulkBehaviour>;
  rates: Record<string, number>;
  access: PlatformShop["access"];
  planHandle: string | null;
  webhook: boolean;
  field: string;
  errorPaths: boolean;
  namesLife: boolean;
  maxRows: number;
  lagsMs: number[];
  cyclesAfterEnd: PlatformShop["cyclesAfterEnd"];
  code: string;
  scopes: string[];
  name: string;
  status: string;
  nextBillingDate: string;
  financialStatus: FinancialStatus;
  test: boolean;
}

type Change = (shop: PlatformShop, given: ChangeFields) => unknown;

/** Changes without arguments, changes with only an id, and changes with an id and the number of a cycle. */
const SHOP_CHANGES = [
  "finishBulkOperations",
  "expireBulkOperations",
  "uninstall",
  "cancelAll",
  "install",
  "redactShop",
] as const;
const TOKEN_CHANGES = ["issueToken", "issuePair", "endRefreshTokens", "revokeTokens"] as const;
const CONTRACT_CHANGES = ["originOrder", "pause", "activate", "cancel", "expire", "fail"] as const;
const OBJECT_CHANGES = ["challenge", "cancelOrder", "deleteCustomer", "requestData", "redactCustomer"] as const;
const CYCLE_CHANGES = ["skipCycle", "unskipCycle", "deleteCycleEdit", "startAttempt"] as const;

/** The changes that another process can make. */
const CHANGES = new Map<string, Change>([
  ...[...SHOP_CHANGES, ...TOKEN_CHANGES].map((name): [string, Change] => [name, (shop) => shop[name]()]),
  ...[...CONTRACT_CHANGES, ...OBJECT_CHANGES].map((name): [string, Change] => [name, (shop, { id }) => shop[name](id)]),
  ...CYCLE_CHANGES.map((name): [string, Change] => [name, (shop, { id, index }) => shop[name](id, index)]),
  ...Object.entries({
    createCustomer: (shop, given) => shop.createCustomer(given),
    updateCustomer: (shop, given) => shop.updateCustomer(given.id, given),
    setConsent: (shop, { id, consent }) => shop.setConsent(id, consent),
    createContract: (shop, given) => shop.createContract(given),
    createContracts: (shop, { list, discounts }) => shop.createContracts(list, discounts),
    updateContract: (shop, given) => shop.updateContract(given.id, given),
    setNextBillingDate: (shop, { id, date }) => shop.setNextBillingDate(id, date),
    editCycle: (shop, { id, index, lines, date }) => shop.editCycle(id, index, lines, date),
    failAttempt: (shop, { id, code }) => shop.failAttempt(id, code),
    succeedAttempt: (shop, given) => shop.succeedAttempt(given.id, given),
    succeedAttempts: (shop, given) => shop.succeedAttempts(given.ids, given),
    placeOrder: (shop, given) => shop.placeOrder(given),
    updateOrder: (shop, given) => shop.updateOrder(given.id, given),
    editOrder: (shop, { id, quantities }) => shop.editOrder(id, quantities),
    refundOrder: (shop, { id, quantities }) => shop.refundOrder(id, quantities),
    setAppSubscription: (shop, given) => shop.setAppSubscription(given),
    setScopes: (shop, { scopes }) => shop.setScopes(scopes),
    setCurrency: (shop, { code }) => shop.setCurrency(code),
    setRates: (shop, { rates }) => shop.setRates(rates),
    setAccess: (shop, { access }) => shop.setAccess(access),
    setMovedTo: (shop, { name }) => void Object.assign(shop, { movedTo: name }),
    setApprovedLevel: (shop, { index }) => void Object.assign(shop, { approvedLevel: index }),
    setBulk: (shop, { bulk }) => shop.setBulk(bulk),
    breakField: (shop, { id, field, code }) => shop.breakField(id, field, code as FieldFaultCode),
    mendFields: (shop) => shop.mendFields(),
    setNamesLife: (shop, { namesLife }) => void Object.assign(shop.tokens, { namesLife }),
    setErrorPaths: (shop, { errorPaths }) => void Object.assign(shop, { errorPaths }),
    setMaxRows: (shop, { maxRows }) => void Object.assign(shop, { maxRows }),
    setCyclesAfterEnd: (shop, { cyclesAfterEnd }) => void Object.assign(shop, { cyclesAfterEnd }),
    setReplicas: (shop, { lagsMs }) => void Object.assign(shop, { replicaLagsMs: lagsMs }),
    seed: (shop, given) => shop.seed(given),
  } satisfies Record<string, Change>),
]);

/** Answers tests and benches in another process: `POST /control`, `GET /control/requests`. */
export async function answerControl(standIn: StandIn, request: IncomingMessage, raw: string): Promise<Answer> {
  const { pathname, searchParams } = new URL(request.url ?? "", standIn.address);
  try {
    if (request.method === "POST") return json(200, { result: (await runCommand(standIn, JSON.parse(raw))) ?? null });
    return json(200, readState(standIn, pathname.slice("/control/".length), searchParams));
  } catch (error) {
    return json(400, { error: error instanceof Error ? error.message : String(error) });
  }
}

export interface Command {
  do?: string;
  shop?: string;
  with?: Record<string, unknown>;
}

/** Runs a command. @returns what `/control` answers */
export function runCommand(standIn: StandIn, { do: what = "", shop: domain = "", with: given = {} }: Command): unknown {
  if (what === "addShop") {
    const { firstId, ...options } = given as ShopOptions & { firstId?: string };
    standIn.addShop(domain, firstId === undefined ? options : { ...options, firstId: BigInt(firstId) });
    return domain;
  }
  if (what === "webhooksTo") {
    standIn.webhooksTo = given["url"] as string | undefined;
    return null;
  }
  if (what === "setMaxQueryCost") return void standIn.setMaxQueryCost(given["maxQueryCost"] as number);
  if (what === "setAppKey") return void Object.assign(standIn.appKey, given);
  if (what === "deploy") return void standIn.app.deploy(given["appFile"] as string);
  if (what === "renameShop") return void standIn.renameShop(domain, given["name"] as string);
  if (what === "setVersions") return void Object.assign(standIn.versions, given);
  if (what === "removeFields") return void Object.assign(standIn, { removedFields: new Set(given["fields"] as []) });
  if (what === "hold") return void hold(standIn, given as unknown as Hold);
  if (what === "setDownloads") return void Object.assign(standIn.files.behaviour, given);
  const change = CHANGES.get(what);
  if (change === undefined) throw new Error(`there is no command ${what}`);
  return change(standIn.shop(domain), given as unknown as ChangeFields) ?? null;
}

/** Answers the next `after` requests of an operation, and holds later requests until the next command `hold`. */
interface Hold {
  held: { operation: string; after: number } | null;
}

const releases = new WeakMap<StandIn, () => void>();

function hold(standIn: StandIn, { held }: Hold): void {
  releases.get(standIn)?.();
  const { promise, resolve } = Promise.withResolvers<void>();
  releases.set(standIn, resolve);
  let answered = 0;
  standIn.fault = ({ operation }) => {
    if (held === null || operation !== held.operation) return undefined;
    answered += 1;
    return answered > held.after ? { until: promise } : undefined;
  };
}

/** Reads a part of the state that another process can see. */
function readState(standIn: StandIn, path: string, query: URLSearchParams): unknown {
  const shop = () => standIn.shop(query.get("shop") ?? "");
  if (path === "ids") return shop().ids((query.get("kind") ?? "contract") as Kind);
  if (path === "workflows") return shop().workflows;
  if (path === "outgoing") return shop().outgoing;
  if (path === "downloads") return standIn.files.downloads;
  if (path === "requests") return standIn.requests;
  if (path === "spent") return spent(standIn, query.get("shop") ?? "");
  if (path === "undelivered") return standIn.undelivered;
  if (path === "state") {
    const { invalid, throttled, tokenRequests, exchanges } = standIn;
    return {
      invalid,
      throttled,
      tokenRequests,
      exchanges,
      requests: standIn.requests.length,
      undelivered: standIn.undelivered.length,
    };
  }
  throw new Error(`there is no state ${path}`);
}

/** The points that a shop's requests took, and the number of requests of each operation. */
export interface Spent {
  points: number;
  operations: Record<string, number>;
}

function spent(standIn: StandIn, domain: string): Spent {
  const operations: Record<string, number> = {};
  for (const { shop, operation } of standIn.requests) {
    if (shop === domain) operations[operation] = (operations[operation] ?? 0) + 1;
  }
  return { points: standIn.bucket(domain).spent, operations };
}
