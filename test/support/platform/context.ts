import type { GraphQLFieldResolver } from "graphql";
import type { PlatformShop } from "./shop.ts";

/** What resolvers know about the request. */
export interface Context {
  shop: PlatformShop;
  /** Reports a part of the request that is invalid or that the stand-in does not support. */
  unknown: (what: string) => void;
  /** The handles of the triggers that the app declares. */
  handles: ReadonlySet<string>;
  /** The text of the request. */
  raw: string;
  /** The type of the error with this code. */
  errorType: (code: string) => string;
}

/** Resolvers for the fields of a type. A field that has the same name in the model needs no resolver. */
export type Fields<S> = Record<string, GraphQLFieldResolver<S, Context>>;
