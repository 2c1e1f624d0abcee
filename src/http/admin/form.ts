import { timingSafeEqual } from "node:crypto";
import { type ErrorCode, invalid, SdsError } from "../../domain/error.ts";
import { sentence } from "../../lib/text.ts";
import type { BodyReader } from "../body.ts";
import type { Visitor } from "./visitor.ts";

/**
 * Maximum number of bytes of a form. The largest form has 50 values of 1,024 characters. A character has up to four
 * bytes, and a form encodes most bytes as three. So the form takes 0.6 MiB.
 */
const MAX_BODY = 1024 * 1024;
const TYPE = "application/x-www-form-urlencoded";

/**
 * Reads the posted form of a session.
 * @returns undefined if the form is not from a page of this session
 * @throws SdsError `too_large`, `unavailable`, or `invalid` for a body that is not a form
 */
export async function readForm(
  bodies: BodyReader,
  request: Request,
  { csrf, shop }: Pick<Visitor, "csrf" | "shop">,
): Promise<URLSearchParams | undefined> {
  const form = await readOwnForm(bodies, request, shop.domain);
  const given = Buffer.from(form?.get("csrf") ?? "");
  const wanted = Buffer.from(csrf);
  return given.length === wanted.length && timingSafeEqual(given, wanted) ? form : undefined;
}

/**
 * Reads a posted form of a page without a session.
 * @param sender name of the sender, for the limits of bodies
 * @returns undefined if the browser says that the form is on another site
 * @throws SdsError as readForm
 */
export async function readOwnForm(
  bodies: BodyReader,
  request: Request,
  sender: string,
): Promise<URLSearchParams | undefined> {
  if (isOfAnotherSite(request)) return undefined;
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== TYPE) throw invalid(`A form must be posted as ${TYPE}.`);
  using body = await bodies.read(request, { maxBytes: MAX_BODY, sender });
  const form = new URLSearchParams(Buffer.from(body.bytes).toString("latin1"));
  // Decoding replaces invalid UTF-8 by U+FFFD. Such a text must not be stored.
  if ([...form.values()].some((value) => value.includes("\ufffd"))) throw invalid("The form is not UTF-8.");
  return form;
}

/** Returns the reason of a refused form as a sentence. @throws `thrown` itself if its code is not in `codes` */
export function reasonOf(thrown: unknown, ...codes: ErrorCode[]): string {
  if (thrown instanceof SdsError && codes.includes(thrown.code)) return sentence(thrown.message);
  throw thrown;
}

/**
 * Whether the browser says that the form is on another site. Browsers send Sec-Fetch-Site only to https and localhost.
 * Elsewhere, an Origin with another host means another site. Our own forms have `Origin: null` because of our
 * Referrer-Policy. So for `null`, only the form's token decides.
 */
function isOfAnotherSite({ headers }: Request): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = headers.get("origin");
  return origin !== null && origin !== "null" && URL.parse(origin)?.host !== headers.get("host");
}
