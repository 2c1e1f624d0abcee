import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import {
  buildClientSchema,
  GraphQLError,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  getNamedType,
  type IntrospectionQuery,
  isEnumType,
  isObjectType,
} from "graphql";
import { BULK_FIELDS } from "./bulk-fields.ts";
import type { Context, Fields } from "./context.ts";
import { ORDER_FIELDS } from "./order-fields.ts";
import { notApproved, ROOT_FIELDS } from "./root-fields.ts";
import { TYPE_NAME } from "./rows.ts";
import { SHOP_FIELDS } from "./shop-fields.ts";
import { SUBSCRIPTION_FIELDS } from "./subscription-fields.ts";
import { API_VERSION } from "./webhook.ts";

/** Protected customer data: the types of level 1, and the fields of level 2. */
const PROTECTED_TYPES = new Set(["Customer", "Order"]);
const PERSONAL_FIELDS = new Set(["Customer.firstName", "Customer.lastName", "Customer.defaultEmailAddress"]);

/** The access scope of each type, and of its pages. */
const SCOPE: Record<string, string> = {
  Customer: "read_customers",
  Order: "read_orders",
  Product: "read_products",
  ProductVariant: "read_products",
  SubscriptionContract: "read_own_subscription_contracts",
  SubscriptionBillingAttempt: "read_own_subscription_contracts",
  SubscriptionBillingCycle: "read_own_subscription_contracts",
};
/** The types whose fields tests can break. */
const BREAKABLE_TYPES = [
  ...Object.values(TYPE_NAME),
  "LineItem",
  "SubscriptionLine",
  "SubscriptionBillingCycle",
  "SubscriptionBillingCycleEditedContract",
];
const COUNTED: Record<string, string> = { customersCount: "Customer", ordersCount: "Order" };
const ERROR_TYPES = ["Payment", "General", "Inventory"].map((sort) => `SubscriptionBillingAttempt${sort}Error`);

/** The npm package that has the platform's schema. It is not installed, because its dependencies take 320 MB. */
const TARBALL = "@shopify/dev-mcp/-/dev-mcp-1.16.0.tgz";
const TARBALL_SHA512 = "tqgRnK7sQhjew+htxtleTH23nXB5fZcsrhWgEkomsorGXvLOB2mh2upwZm8uzuTDNTZnqtLMe64yIwh6s2awtw==";
const CACHE = join(import.meta.dir, "../../../node_modules/.cache/dev-mcp-1.16.0");

// Loaded at import, because the time limit of a test does not apply to imports.
const schemaOfSds = await platformSchema(API_VERSION);

/** The platform's schema of one version of its API, without resolvers. The schema is downloaded once. */
export async function platformSchema(version: string): Promise<GraphQLSchema> {
  const name = `admin_${version}.json.gz`;
  const file = join(CACHE, name);
  if (!existsSync(file)) await fetchSchema(name, file);
  const read = JSON.parse(gunzipSync(readFileSync(file)).toString()) as
    | IntrospectionQuery
    | { data: IntrospectionQuery };
  return buildClientSchema("data" in read ? read.data : read, { assumeValid: true });
}

async function fetchSchema(name: string, file: string): Promise<void> {
  const registry = process.env["npm_config_registry"] ?? "https://registry.npmjs.org";
  const url = `${registry.replace(/\/$/, "")}/${TARBALL}`;
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} gave ${answer.status}`);
  const tarball = await answer.bytes();
  const found = new Bun.CryptoHasher("sha512").update(tarball).digest("base64");
  if (found !== TARBALL_SHA512) throw new Error(`${url} is not the expected file: its sha512 is ${found}`);
  const files = await new Bun.Archive(tarball).files(`package/dist/data/${name}`);
  const [schema] = files.values();
  if (schema === undefined) throw new Error(`${url} has no ${name}`);
  mkdirSync(CACHE, { recursive: true });
  // The draft is renamed when it is complete, because another test process may read the file now.
  const draft = `${file}.${process.pid}`;
  await Bun.write(draft, schema);
  renameSync(draft, file);
}

let loaded: GraphQLSchema | undefined;

/** The platform's own schema. Its fields read the rows of the stand-in. */
export function adminSchema(): GraphQLSchema {
  loaded ??= load();
  return loaded;
}

function load(): GraphQLSchema {
  const schema = schemaOfSds;
  const tables: Record<string, Fields<never>> = {
    ...ROOT_FIELDS,
    ...SHOP_FIELDS,
    ...SUBSCRIPTION_FIELDS,
    ...ORDER_FIELDS,
    ...BULK_FIELDS,
  };
  for (const [name, fields] of Object.entries(tables)) {
    const type = schema.getType(name);
    if (!isObjectType(type)) throw new Error(`the schema has no type ${name}`);
    for (const [key, resolve] of Object.entries(fields)) {
      const field = type.getFields()[key];
      if (field === undefined) throw new Error(`the schema has no ${name}.${key}`);
      field.resolve = resolve as GraphQLFieldResolver<unknown, Context>;
    }
  }
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith("__")) continue;
    for (const field of Object.values(type.getFields())) {
      const read = COUNTED[field.name] ?? getNamedType(field.type).name.replace(/Connection$/, "");
      const scope = SCOPE[read];
      if (scope !== undefined) field.resolve = withScope(scope, field.resolve ?? plainField);
      const level = PERSONAL_FIELDS.has(`${type.name}.${field.name}`) ? 2 : PROTECTED_TYPES.has(read) ? 1 : undefined;
      const what = level === 2 ? `use the ${field.name} field` : `access the ${read} object`;
      if (level !== undefined) field.resolve = withApproval(level, what, field.resolve ?? plainField);
    }
  }
  for (const name of BREAKABLE_TYPES) {
    const type = schema.getType(name);
    if (!isObjectType(type)) throw new Error(`the schema has no type ${name}`);
    for (const field of Object.values(type.getFields()))
      field.resolve = withFault(`${name}.${field.name}`, field.resolve ?? plainField);
  }
  return schema;
}

/** Wraps a resolver so that it throws if the app has no approval for protected customer data of this level. */
function withApproval(
  level: number,
  what: string,
  resolve: GraphQLFieldResolver<unknown, Context>,
): GraphQLFieldResolver<unknown, Context> {
  return (source, args, context, info) => {
    if (context.shop.approvedLevel >= level) return resolve(source, args, context, info);
    throw notApproved(what);
  };
}

/** Wraps a resolver so that it throws if a test broke the field. */
function withFault(
  field: string,
  resolve: GraphQLFieldResolver<unknown, Context>,
): GraphQLFieldResolver<unknown, Context> {
  return (source, args, context, info) => {
    const code = context.shop.faultOf(source, field);
    if (code === undefined) return resolve(source, args, context, info);
    const message = code === "ACCESS_DENIED" ? `Access denied for ${info.fieldName} field.` : "Internal error.";
    throw new GraphQLError(message, { extensions: { code } });
  };
}

function withScope(
  scope: string,
  resolve: GraphQLFieldResolver<unknown, Context>,
): GraphQLFieldResolver<unknown, Context> {
  return (source, args, context, info) => {
    if (context.shop.scopes.includes(scope)) return resolve(source, args, context, info);
    const requiredAccess = `\`${scope}\` access scope.`;
    const extensions = {
      code: "ACCESS_DENIED",
      documentation: "https://shopify.dev/api/usage/access-scopes",
      requiredAccess,
    };
    throw new GraphQLError(`Access denied for ${info.fieldName} field. Required access: ${requiredAccess}`, {
      extensions,
    });
  };
}

/** Resolves a field that has the same name in the model. A missing field is an error, because a null would be wrong. */
export const plainField: GraphQLFieldResolver<unknown, Context> = (source, _, __, info) => {
  if (typeof source === "object" && source !== null && info.fieldName in source)
    return (source as Record<string, unknown>)[info.fieldName];
  throw new GraphQLError(`the stand-in has no ${info.parentType.name}.${info.fieldName}`);
};

export function typeNameOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if ("__typename" in value && typeof value.__typename === "string") return value.__typename;
  if ("kind" in value && typeof value.kind === "string") return (TYPE_NAME as Record<string, string>)[value.kind];
  return undefined;
}

/** The type of error that a code belongs to. */
export function errorType(code: string): string {
  const schema = adminSchema();
  const found = ERROR_TYPES.find((name) => {
    const codes = schema.getType(`${name}Code`);
    return isEnumType(codes) && codes.getValue(code) !== undefined;
  });
  return found ?? "SubscriptionBillingAttemptUnexpectedError";
}
