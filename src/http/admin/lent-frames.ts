import { newRequestId, respondNotFound } from "../respond.ts";
import type { RouteHandler } from "../routes.ts";
import type { AdminDependencies } from "./admin-request.ts";
import { respondFrame } from "./layout.tsx";
import type { Frame, Visitor } from "./visitor.ts";

/** Our script opens the address at once. */
const LOAN_MS = 60_000;
const KEY_BYTES = 32;
const NUMBER_BYTES = 16;

interface Loan {
  html: string;
  frame: Frame;
}

type Dependencies = Pick<AdminDependencies, "store" | "now" | "random">;

/**
 * Lends a document an address that works once. A frame in a page of the platform's admin cannot send an ID token, and a
 * document that a script makes would have the page's own policy. Another node may serve the address, so the document
 * waits in the database, sealed for the visitor.
 */
export async function lendFrame(
  { store, now, random }: Dependencies,
  visitor: Visitor,
  html: string,
): Promise<Response> {
  const { key, frame, root } = visitor;
  if (frame === null) throw new Error("only a framed page lends documents");
  const number = random(NUMBER_BYTES).toHex();
  await store.settingsPage.putNotice(
    key,
    pathOf(number),
    JSON.stringify({ html, frame } satisfies Loan),
    now() + LOAN_MS,
  );
  return new Response(null, {
    status: 201,
    headers: {
      Location: `${root}/lent/${key.toHex()}${number}`,
      "Cache-Control": "no-store",
      "X-Request-Id": newRequestId(),
    },
  });
}

/** Makes the handler of lent addresses, with `:id` at the end. */
export function createLentFrameHandler({ store, now }: Dependencies): RouteHandler {
  return async (_request, { id }) => {
    if (!/^[0-9a-f]+$/.test(id) || id.length !== 2 * (KEY_BYTES + NUMBER_BYTES)) return respondNotFound();
    const [key, number] = [id.slice(0, 2 * KEY_BYTES), id.slice(2 * KEY_BYTES)];
    const [text] = await store.settingsPage.takeNotices(Uint8Array.fromHex(key), pathOf(number), now());
    if (text === undefined) return respondNotFound();
    const { html, frame } = JSON.parse(text) as Loan;
    return respondFrame(html, frame);
  };
}

/** A path below which no page has notices. */
function pathOf(number: string): string {
  return `/lent/${number}`;
}
