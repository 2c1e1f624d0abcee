import type { GraphQLFieldResolver } from "graphql";
import type { PlatformShop } from "./shop.ts";

/** What resolvers know of the request. */
export interface Context {
  shop: PlatformShop;
  /** Says what was asked for that this stand-in does not have, or that makes no sense. */
  unknown: (what: string) => void;
  /** The trigger handles that are declared. */
  handles: ReadonlySet<string>;
  /** The request as it came. */
  raw: string;
  /** Of which type an attempt's error with this code is. */
  errorType: (code: string) => string;
}

/** How a type's fields come from what stands for it in the model; fields that have the model's own name are left out. */
export type Fields<S> = Record<string, GraphQLFieldResolver<S, Context>>;
