import { asObject } from "../../lib/json.ts";
import { platformRecordError } from "./values.ts";

/** The shape that the reading relies on: objects, lists and texts. Values are checked later, with the records. */
type Shape = { parts: Record<string, Shape>; canBeNull?: boolean; canBeAbsent?: boolean } | { each: Shape } | "text";

function object(parts: Record<string, Shape> = {}): Shape {
  return { parts };
}

function page(each: Shape): Shape {
  return object({ pageInfo: object(), nodes: { each } });
}

/** Returns the shape of a further page of a list. The page is absent if the list's object was deleted meanwhile. */
function furtherPage(each: Shape): Shape {
  return { parts: { pageInfo: object(), nodes: { each } }, canBeAbsent: true };
}

/** Returns the shape of an object that is absent if the app has no access to it. */
function optional(parts: Record<string, Shape> = {}): Shape {
  return { parts, canBeNull: true, canBeAbsent: true };
}

const SHOP_MONEY = object({ shopMoney: object() });
const ORDER_LINE = object({
  contract: optional({ id: "text" }),
  originalUnitPriceSet: object({ shopMoney: object(), presentmentMoney: { parts: {}, canBeAbsent: true } }),
  discountAllocations: { each: object({ allocatedAmountSet: SHOP_MONEY, discountApplication: object() }) },
});
const CONTRACT_LINE = object({ currentPrice: object(), lineDiscountedPrice: object() });
const ATTEMPT = object({
  state: { parts: { error: { parts: {}, canBeAbsent: true }, order: optional({ id: "text" }) } },
});
const CYCLE = object({ billingAttempts: page(ATTEMPT) });
const CONTRACT_PARTS = {
  id: "text",
  customer: optional({ id: "text" }),
  billingPolicy: object(),
  originOrder: optional({ id: "text" }),
  lines: page(CONTRACT_LINE),
} satisfies Record<string, Shape>;

/** The shapes of the platform's answers, by their names in error messages. */
const SHAPES = {
  attempts: furtherPage(ATTEMPT),
  "a contract": object(CONTRACT_PARTS),
  "a contract of a page": object({ ...CONTRACT_PARTS, billingAttempts: page(ATTEMPT) }),
  "lines of a contract": furtherPage(CONTRACT_LINE),
  "a customer": object({ defaultEmailAddress: optional() }),
  cycles: object({ subscriptionBillingCycles: object({ nodes: { each: CYCLE } }) }),
  "an order": object({ lineItems: page(ORDER_LINE) }),
  "lines of an order": furtherPage(ORDER_LINE),
} satisfies Record<string, Shape>;

/** Checks the shape that the reading relies on. @throws SdsError `bad_record` that names the first missing part */
export function requireShape<T>(name: keyof typeof SHAPES, value: T): T {
  const gap = gapIn(value, SHAPES[name], "");
  if (gap === undefined) return value;
  throw platformRecordError(`the platform sent ${name} without ${gap === "" ? "any data" : gap.slice(1)}`);
}

/** Returns the path of the first part that does not fit, like `.lines.nodes[0]`; undefined if every part fits. */
function gapIn(value: unknown, shape: Shape, path: string): string | undefined {
  if (shape === "text") return typeof value === "string" ? undefined : path;
  if ("each" in shape) {
    if (!Array.isArray(value)) return path;
    return firstGap(value.entries(), ([index, each]) => gapIn(each, shape.each, `${path}[${index}]`));
  }
  if ((value === null && shape.canBeNull === true) || (value === undefined && shape.canBeAbsent === true))
    return undefined;
  const fields = asObject(value);
  if (fields === undefined) return path;
  return firstGap(Object.entries(shape.parts), ([name, part]) => gapIn(fields[name], part, `${path}.${name}`));
}

function firstGap<T>(items: Iterable<T>, gapOf: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const gap = gapOf(item);
    if (gap !== undefined) return gap;
  }
  return undefined;
}
