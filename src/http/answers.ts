import { type Static, Type } from "@sinclair/typebox";
import { API_ERROR_CODES, CURSOR_PROBLEMS } from "../domain/error.ts";
import type { FieldValues } from "../domain/fields/value.ts";
import { Customer, Order, oneOf, orNull, Subscription } from "../domain/resources.ts";
import { PLANS } from "../domain/shop.ts";

/** The schema of `page` in an answer with rows (docs/api.md, "Pagination"). */
export const PageInfo = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, maximum: 250, description: "The most rows that the page could have." }),
    nextCursor: orNull(
      Type.String({ description: "Pass it as `cursor` to get the next page. Null: nothing more follows." }),
    ),
  },
  { title: "PageInfo" },
);
export type PageInfo = Static<typeof PageInfo>;

/** Values of custom fields (docs/fields.md). A date is text. */
export const CustomFields = Type.Unsafe<FieldValues>({
  type: "object",
  additionalProperties: Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
  description:
    "Values of the shop's own fields by their keys, in the order of the fields. A field without a value is absent. " +
    "Only with `include=customFields`.",
});

/**
 * The schema of a row, by resource. One schema covers subscriptions with and without custom fields. Two schemas would
 * become a union type in generated clients. Programs would have to check the type before they read a field.
 */
export const ANSWER_SCHEMAS = {
  subscriptions: Type.Object(
    { ...Subscription.properties, customFields: Type.Optional(CustomFields) },
    { title: "Subscription", description: Subscription.description ?? "" },
  ),
  customers: Customer,
  orders: Order,
} as const;

/** What the API says about the shop that a key belongs to. */
export const ShopAnswer = Type.Object(
  {
    domain: Type.String({ description: "The shop's domain at the platform." }),
    plan: oneOf(PLANS, "`pro`, `free` or `free+addon`."),
    currency: Type.String({ description: "ISO 4217 code. All amounts are in this currency." }),
  },
  { title: "Shop", description: "The shop that the API key belongs to." },
);
export type ShopAnswer = Static<typeof ShopAnswer>;

/** An error in JSON (docs/api.md, "Errors"). */
export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: oneOf(API_ERROR_CODES, "For programs. Codes can be added."),
      message: Type.String({ description: "For people. The text can change." }),
      reason: Type.Optional(
        oneOf(CURSOR_PROBLEMS, "Only of `bad_cursor`. Read all rows again only for `restored`. Reasons can be added."),
      ),
    }),
  },
  { title: "ApiError", description: "An error has a code and a message. `bad_cursor` has a reason too." },
);
export type ErrorBody = Static<typeof ErrorBody>;

/** The answer of the intake after the commit. */
export const IntakeResult = Type.Object(
  { accepted: Type.Integer({ minimum: 0, description: "The number of records in the body." }) },
  { title: "IntakeResult" },
);
export type IntakeResult = Static<typeof IntakeResult>;

export const Health = Type.Object({ status: Type.Literal("ok") }, { title: "Health" });
export type Health = Static<typeof Health>;
