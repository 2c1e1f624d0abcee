import type { ServerResponse } from "node:http";
import type { GraphqlRequest } from "./admin-graphql.ts";

/** An HTTP answer of the stand-in. */
export interface Answer {
  status: number;
  body: string;
  headers?: Record<string, string>;
}

/** The fields of a form, or of a JSON object. */
export type Body = Record<string, unknown>;

export function readBody(raw: string, contentType = ""): Body {
  if (contentType.startsWith("application/x-www-form-urlencoded")) return Object.fromEntries(new URLSearchParams(raw));
  try {
    const body: unknown = JSON.parse(raw);
    return typeof body === "object" && body !== null ? { ...body } : {};
  } catch {
    return {};
  }
}

export function asRequest({ query, variables, operationName: name }: Body): GraphqlRequest {
  const isNamed = typeof name === "string";
  return {
    query: String(query ?? ""),
    variables: typeof variables === "object" ? { ...variables } : {},
    operationName: isNamed ? name : null,
  };
}

export function json(status: number, body: unknown): Answer {
  return { status, body: JSON.stringify(body), headers: { "Content-Type": "application/json; charset=utf-8" } };
}

/** @param now epoch milliseconds of the stand-in's clock */
export function write(response: ServerResponse, { status, body, headers = {} }: Answer, now: number): void {
  response.writeHead(status, { Date: new Date(now).toUTCString(), ...headers }).end(body);
}
