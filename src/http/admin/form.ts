import { timingSafeEqual } from "node:crypto";
import { SdsError } from "../../domain/error.ts";
import { readBody } from "../body.ts";

const MAX_BODY = 64 * 1024;
/** A form of a few lines that takes longer is not sent by a browser. Milliseconds. */
const BODY_MAY_TAKE = 20_000;
const TYPE = "application/x-www-form-urlencoded";

/**
 * What somebody who is signed in posted.
 * @returns undefined where the form is not one that this session was given
 * @throws SdsError `too_large`, or `invalid` for another kind of body
 */
export async function readForm(request: Request, csrf: string): Promise<URLSearchParams | undefined> {
  if (isOfAnotherSite(request)) return undefined;
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== TYPE) throw new SdsError("invalid", `A form is posted as ${TYPE}.`);
  const form = new URLSearchParams(Buffer.from(await inTime(readBody(request, MAX_BODY))).toString("latin1"));
  // Each value was escaped, byte by byte: one that is not UTF-8 is not replaced by question marks and stored.
  if ([...form.values()].some((value) => value.includes("\ufffd"))) throw new SdsError("invalid", "The form is not UTF-8.");
  const given = Buffer.from(form.get("csrf") ?? "");
  const wanted = Buffer.from(csrf);
  return given.length === wanted.length && timingSafeEqual(given, wanted) ? form : undefined;
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new SdsError("invalid", "The form did not come in time.")), BODY_MAY_TAKE);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * What a browser says of where a form came from. Sec-Fetch-Site decides where it is there (https and localhost). Elsewhere a browser sends `Origin: null` for our own
 * forms, as the pages' Referrer-Policy has it, and the token alone decides; only an origin that is named and another one is refused.
 */
function isOfAnotherSite({ headers }: Request): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = headers.get("origin");
  return origin !== null && origin !== "null" && URL.parse(origin)?.host !== headers.get("host");
}
