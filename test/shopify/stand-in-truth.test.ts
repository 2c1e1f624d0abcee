import { expect, test } from "bun:test";
import { runCommand } from "../support/platform/control.ts";
import type { LineInput } from "../support/platform/lines.ts";
import { INSTALLATION } from "./stand-in-operations.ts";
import { DOMAIN, oneContract, PATH, started } from "./stand-in-started.ts";

const NEXT = `query Next($id: ID!) { subscriptionContract(id: $id) { status nextBillingDate lastBillingAttemptErrorType
  originOrder { id } } }`;
const LINES = `query Lines($id: ID!) { order(id: $id) { totalPriceSet { shopMoney { amount } } lineItems(first: 10) {
  nodes { title contract { id } originalUnitPriceSet { shopMoney { amount } } } } } }`;
const CYCLES = `query Cycles($c: ID!, $from: Int!, $to: Int!) { subscriptionBillingCycles(contractId: $c, first: 10,
  billingCyclesIndexRangeSelector: {startIndex: $from, endIndex: $to}) { nodes { cycleIndex status edited
  billingAttemptExpectedDate cycleEndAt
  editedContract { linesCount { count } lines(first: 5) { nodes { id title currentPrice { amount } } } } } } }`;
const tea: LineInput = { title: "Tea", price: "3.00", variant: "gid://shopify/ProductVariant/2" };
const cup: LineInput = { title: "Cup", price: "8.00", variant: "gid://shopify/ProductVariant/3" };

test("on request, nobody sets the next billing date of a contract", async () => {
  const { shop, read } = await started();
  shop.seed({ contracts: 1, renewals: 2, setsNextBillingDate: false });
  const seeded = shop.ids("contract")[0] ?? "";
  const id = shop.createContract({ customer: shop.createCustomer(), lines: [tea], setsNextBillingDate: false });
  shop.succeedAttempt(shop.startAttempt(id, 1));
  for (const contract of [seeded, id])
    expect(await read(NEXT, { id: contract })).toMatchObject({ nextBillingDate: null });
});

test("one order begins or renews several contracts, and each line names its contract", async () => {
  const { shop, read } = await started();
  const customer = shop.createCustomer();
  const [first = "", second = ""] = shop.createContracts([
    { customer, lines: [tea] },
    { customer, lines: [cup, tea], interval: "WEEK" },
  ]);
  expect(shop.outgoing.map(({ topic }) => topic)).toEqual([
    "customers/create",
    "subscription_contracts/create",
    "subscription_contracts/create",
    "orders/create",
    "orders/paid",
  ]);
  const begun = shop.originOrder(first);
  expect(shop.originOrder(second)).toBe(begun);
  const attempts = [shop.startAttempt(first, 1), shop.startAttempt(second, 1)];
  const renewed = shop.succeedAttempts(attempts);
  expect(renewed).not.toBe(begun ?? "");
  for (const id of [begun, renewed])
    expect(await read(LINES, { id })).toMatchObject({
      totalPriceSet: { shopMoney: { amount: "14.0" } },
      lineItems: {
        nodes: [
          { title: "Tea", contract: { id: first } },
          { title: "Cup", contract: { id: second } },
          { title: "Tea", contract: { id: second } },
        ],
      },
    });
  const topics = shop.outgoing.slice(5).map(({ topic }) => topic);
  expect(topics.filter((topic) => topic === "subscription_billing_attempts/success")).toHaveLength(2);
  expect(topics.filter((topic) => topic === "orders/create")).toHaveLength(1);
  expect(await read(NEXT, { id: second })).toMatchObject({ nextBillingDate: "2026-03-15T12:00:00Z" });
});

test("the cycles of a contract that ended go on without end", async () => {
  const { shop, read } = await started();
  for (const end of [shop.cancel, shop.expire, shop.fail]) {
    const c = oneContract(shop);
    end(c);
    expect(await read(CYCLES, { c, from: 1000, to: 1001 })).toMatchObject({
      nodes: [{ cycleIndex: 1000, status: "UNBILLED" }, { cycleIndex: 1001 }],
    });
  }
});

test("cycles after the end of a contract are listed, cut off, refused or null", async () => {
  const { standIn, shop, query } = await started();
  const c = shop.createContract({ customer: shop.createCustomer(), lines: [tea], maxCycles: 2 });
  const one = `query One($c: ID!, $index: Int!) { cycle: subscriptionBillingCycle(billingCycleInput: {contractId: $c,
    selector: {index: $index}}) { cycleIndex } }`;
  const answers = async (index: number) => {
    const list = await query(CYCLES, { c, from: index - 1, to: index });
    const { data, errors } = await query(one, { c, index });
    const indexes = (list.data as { subscriptionBillingCycles: { nodes: { cycleIndex: number }[] } } | null)
      ?.subscriptionBillingCycles.nodes;
    return [indexes?.map(({ cycleIndex }) => cycleIndex), errors === undefined ? data : errors.length];
  };
  const expected = {
    listed: [[2, 3], { cycle: { cycleIndex: 3 } }],
    cut: [[2], { cycle: null }],
    refused: [undefined, 1],
    null: [undefined, { cycle: null }],
  };
  for (const [cyclesAfterEnd, answer] of Object.entries(expected)) {
    runCommand(standIn, { do: "setCyclesAfterEnd", shop: DOMAIN, with: { cyclesAfterEnd } });
    expect(await answers(2)).toEqual([[1, 2], { cycle: { cycleIndex: 2 } }]);
    expect(await answers(3)).toEqual(answer);
  }
});

test("an edited cycle has lines and a date of its own", async () => {
  const { shop, query, read } = await started();
  const c = shop.createContract({ customer: shop.createCustomer(), lines: [tea] });
  const nodes = async () => {
    const { data } = await query(CYCLES, { c, from: 2, to: 3 });
    return (data as { subscriptionBillingCycles: { nodes: unknown[] } }).subscriptionBillingCycles.nodes;
  };
  shop.editCycle(c, 2, [tea, cup]);
  shop.editCycle(c, 2, undefined, "2026-05-09T00:00:00Z");
  shop.editCycle(c, 3, undefined, "2026-06-09T00:00:00Z");
  expect(await nodes()).toMatchObject([
    {
      edited: true,
      cycleEndAt: "2026-05-01T12:00:00Z",
      billingAttemptExpectedDate: "2026-05-09T00:00:00Z",
      editedContract: { linesCount: { count: 2 }, lines: { nodes: [{ title: "Tea" }, { title: "Cup" }] } },
    },
    { edited: true, billingAttemptExpectedDate: "2026-06-09T00:00:00Z", editedContract: null },
  ]);
  const body = JSON.parse(shop.outgoing.at(-1)?.body ?? "{}");
  expect(body).toMatchObject({
    cycle_index: 3,
    edited: true,
    billing_attempt_expected_date: "2026-06-08T19:00:00-05:00",
  });
  shop.succeedAttempt(shop.startAttempt(c, 1));
  expect(await read(NEXT, { id: c })).toMatchObject({ nextBillingDate: "2026-05-09T00:00:00Z" });
  const order = shop.succeedAttempt(shop.startAttempt(c, 2));
  expect(await read(LINES, { id: order })).toMatchObject({ totalPriceSet: { shopMoney: { amount: "11.0" } } });
  shop.deleteCycleEdit(c, 2);
  expect(await nodes()).toMatchObject([{ edited: false, editedContract: null }, { edited: true }]);
  expect(shop.outgoing.map(({ topic }) => topic).filter((topic) => topic.includes("edits"))).toEqual([
    "subscription_billing_cycle_edits/create",
    "subscription_billing_cycle_edits/update",
    "subscription_billing_cycle_edits/create",
    "subscription_billing_cycle_edits/delete",
  ]);
});

test("an attempt can fail because goods are out of stock", async () => {
  const { shop, read } = await started();
  const contract = oneContract(shop);
  const id = shop.startAttempt(contract, 1);
  shop.failAttempt(id, "INSUFFICIENT_INVENTORY");
  const text = `query Attempt($id: ID!) { subscriptionBillingAttempt(id: $id) { errorCode state {
    ... on SubscriptionBillingAttemptFailedState { error { __typename ... on SubscriptionBillingAttemptInventoryError {
      code insufficientStockProductVariants(first: 1) { nodes { id } } } } } } } }`;
  const code = "INSUFFICIENT_INVENTORY";
  expect(await read(text, { id })).toMatchObject({
    errorCode: code,
    state: { error: { __typename: "SubscriptionBillingAttemptInventoryError", code } },
  });
  expect(await read(NEXT, { id: contract })).toMatchObject({ lastBillingAttemptErrorType: "INVENTORY_ERROR" });
  expect(shop.outgoing.at(-1)?.body).toContain('"error_code":"insufficient_inventory"');
});

test("an amount can have a fraction of a minor unit", async () => {
  const { shop, read } = await started();
  const odd = { ...tea, price: "12.345", quantity: 3 };
  const contract = shop.createContract({ customer: shop.createCustomer(), lines: [odd] });
  const id = shop.succeedAttempt(shop.startAttempt(contract, 1), { discounts: [{ title: "A", amount: "0.1" }] });
  expect(await read(LINES, { id })).toMatchObject({
    totalPriceSet: { shopMoney: { amount: "36.935" } },
    lineItems: { nodes: [{ originalUnitPriceSet: { shopMoney: { amount: "12.345" } } }] },
  });
  expect(shop.outgoing.find(({ topic }) => topic === "orders/create")?.body).toContain('"price":"12.345"');
  const free = shop.placeOrder({ lines: [odd], discounts: [{ title: "All of it", amount: "99" }] });
  expect(await read(LINES, { id: free })).toMatchObject({ totalPriceSet: { shopMoney: { amount: "0.0" } } });
  shop.setCurrency("JPY");
  const yen = shop.placeOrder({ lines: [{ title: "Tea", price: "100.5" }] });
  expect(await read(LINES, { id: yen })).toMatchObject({ totalPriceSet: { shopMoney: { amount: "100.5" } } });
});

test("a frozen app subscription is not active, and an app subscription with manual pricing has no plan handle", async () => {
  const { shop, read } = await started();
  shop.setAppSubscription({ name: "Pro", status: "FROZEN", webhook: false });
  expect(shop.outgoing).toEqual([]);
  expect(await read(INSTALLATION)).toMatchObject({
    activeSubscriptions: [],
    allSubscriptions: { nodes: [{ status: "FROZEN" }] },
  });
  shop.setAppSubscription({ name: "By hand", status: "ACTIVE", planHandle: null });
  expect(await read(INSTALLATION)).toMatchObject({
    activeSubscriptions: [{ name: "By hand", lineItems: [{ plan: { pricingDetails: { planHandle: null } } }] }],
  });
  expect(JSON.parse(shop.outgoing[0]?.body ?? "{}")).toMatchObject({ app_subscription: { plan_handle: null } });
  const latest =
    "{ currentAppInstallation { allSubscriptions(first: 1, reverse: true, sortKey: CREATED_AT) { nodes { name } } } }";
  expect(await read(latest)).toMatchObject({ allSubscriptions: { nodes: [{ name: "By hand" }] } });
});

test("a shop can be closed to the app, lose its refresh tokens, and come back", async () => {
  const { shop, post, grant, standIn } = await started();
  const status = async (token = shop.issueToken()) => (await post(PATH, { query: "{ shop { id } }" }, token)).status;
  shop.setAccess("frozen");
  expect([await status(), (await grant({ grant_type: "client_credentials" }))["status"]]).toEqual([402, 402]);
  shop.setAccess("blocked");
  expect(await status()).toBe(403);
  for (const [access, code] of [["closed", 404] as const, ["locked", 423] as const, ["suspected", 430] as const]) {
    shop.setAccess(access);
    expect(await status()).toBe(code);
  }
  shop.setAccess("open");
  const { accessToken, refreshToken } = shop.issuePair();
  shop.endRefreshTokens();
  expect(await status(accessToken)).toBe(200);
  const refresh = { grant_type: "refresh_token", refresh_token: refreshToken };
  expect(await grant(refresh)).toEqual({ status: 400, error: "invalid_grant" });
  shop.uninstall();
  expect(await status(accessToken)).toBe(401);
  expect(await grant({ grant_type: "client_credentials" })).toEqual({ status: 400, error: "app_not_installed" });
  shop.install();
  const { access_token } = await grant({ grant_type: "client_credentials" });
  expect(await status(String(access_token))).toBe(200);
  expect(standIn.invalid).toEqual([]);
});

test("another process can make all these changes", async () => {
  const { shop, standIn } = await started();
  const run = (what: string, given: Record<string, unknown>) =>
    runCommand(standIn, { do: what, shop: DOMAIN, with: given });
  const customer = run("createCustomer", {});
  const list = [
    { customer, lines: [tea] },
    { customer, lines: [cup], setsNextBillingDate: false },
  ];
  const [first, second] = run("createContracts", { list }) as string[];
  const ids = [run("startAttempt", { id: first, index: 1 }), run("startAttempt", { id: second, index: 1 })];
  expect(run("succeedAttempts", { ids })).toMatch(/Order/);
  run("editCycle", { id: first, index: 2, lines: [cup], date: "2026-05-09T00:00:00Z" });
  run("deleteCycleEdit", { id: first, index: 2 });
  run("endRefreshTokens", {});
  run("setAppSubscription", { name: "By hand", status: "FROZEN", planHandle: null });
  run("setAccess", { access: "frozen" });
  expect([shop.access, shop.appSubscriptions.at(-1)?.planHandle]).toEqual(["frozen", null]);
});
