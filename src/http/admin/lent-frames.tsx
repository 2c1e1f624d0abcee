/** @jsxImportSource preact */
import { newRequestId, respondNotFound } from "../respond.ts";
import type { RouteHandler } from "../routes.ts";
import type { AdminDependencies, AdminFile, AdminPage } from "./admin-request.ts";
import { respondFile, respondFrame } from "./layout.tsx";
import type { Frame, Visitor } from "./visitor.ts";

/** Our script opens the address at once. */
const LOAN_MS = 60_000;
const KEY_BYTES = 32;
const NUMBER_BYTES = 16;

/** A document for a frame, or a file. */
type Loan = { html: string; frame: Frame } | AdminFile;

type Dependencies = Pick<AdminDependencies, "store" | "now" | "random">;

/**
 * Lends a document or a file an address that works once. A frame or a download in a page of the platform's admin cannot
 * send an ID token, and a document that a script makes would have the page's own policy. Another node may serve the
 * address, so the loan waits in the database, sealed for the visitor.
 */
async function lend({ store, now, random }: Dependencies, { key, root }: Visitor, loan: Loan): Promise<string> {
  const number = random(NUMBER_BYTES).toHex();
  await store.settingsPage.putNotice(key, pathOf(number), JSON.stringify(loan), now() + LOAN_MS);
  return `${root}/lent/${key.toHex()}${number}`;
}

/** Responds with the address of a document, for our script. */
export async function lendFrame(dependencies: Dependencies, visitor: Visitor, html: string): Promise<Response> {
  const { frame } = visitor;
  if (frame === null) throw new Error("only a framed page lends documents");
  return new Response(null, {
    status: 201,
    headers: {
      Location: await lend(dependencies, visitor, { html, frame }),
      "Cache-Control": "no-store",
      "X-Request-Id": newRequestId(),
    },
  });
}

/** Makes the page that leads to a file: our script fetches every page, and would not save a file. */
export async function lendFile(dependencies: Dependencies, visitor: Visitor, loan: AdminFile): Promise<AdminPage> {
  const address = await lend(dependencies, visitor, loan);
  const { name } = loan.file;
  const content = (
    <>
      <p>The file has personal data. Keep it where only the people who need it can read it.</p>
      <p>
        <a id="download" class="button" href={address} download={name}>
          Download {name}
        </a>
      </p>
      <p class="muted">The link works once, for a minute.</p>
    </>
  );
  const trail = { to: "/data/requests", name: "Data" };
  return { title: "The file is ready", tab: "/data/requests", trail, content };
}

/** Makes the handler of lent addresses, with `:id` at the end. */
export function createLentFrameHandler({ store, now }: Dependencies): RouteHandler {
  return async (_request, { id }) => {
    if (!/^[0-9a-f]+$/.test(id) || id.length !== 2 * (KEY_BYTES + NUMBER_BYTES)) return respondNotFound();
    const [key, number] = [id.slice(0, 2 * KEY_BYTES), id.slice(2 * KEY_BYTES)];
    const [text] = await store.settingsPage.takeNotices(Uint8Array.fromHex(key), pathOf(number), now());
    if (text === undefined) return respondNotFound();
    const loan = JSON.parse(text) as Loan;
    return "file" in loan ? respondFile(loan) : respondFrame(loan.html, loan.frame);
  };
}

/** A path below which no page has notices. */
function pathOf(number: string): string {
  return `/lent/${number}`;
}
