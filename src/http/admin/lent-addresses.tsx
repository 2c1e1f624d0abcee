/** @jsxImportSource preact */
import { hashToken } from "../../actions/session.ts";
import { newRequestId, respondNotFound } from "../respond.ts";
import type { RouteHandler } from "../routes.ts";
import type { AdminDependencies, AdminFile, AdminPage } from "./admin-request.ts";
import { respondFile, respondFrame } from "./layout.tsx";
import type { Frame, Visitor } from "./visitor.ts";

/** Our script opens the address at once. */
const LOAN_MS = 60_000;
const NUMBER_BYTES = 16;
const PATH = "/lent";

/** A document for a frame, or a file. */
type Loan = { html: string; frame: Frame } | AdminFile;

type Dependencies = Pick<AdminDependencies, "store" | "now" | "random">;

/**
 * Lends a document or a file an address that works once. A frame or a download in a page of the platform's admin cannot
 * send an ID token, and a document that a script makes would have the page's own policy. Another node may serve the
 * address, so the loan waits in the database. The address has a random number and nothing of the visitor.
 */
async function lend({ store, now, random }: Dependencies, { shop, root }: Visitor, loan: Loan): Promise<string> {
  const number = random(NUMBER_BYTES).toHex();
  const key = keyOf(number);
  await store.sessions.put(key, shop.id, now(), now() + LOAN_MS);
  await store.settingsPage.putNotice(key, PATH, JSON.stringify(loan), now() + LOAN_MS);
  return `${root}${PATH}/${number}`;
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
      <p class="muted">The link works once, within a minute.</p>
    </>
  );
  const trail = { to: "/data/requests", name: "Data" };
  return { title: "The file is ready", tab: "/data/requests", trail, content };
}

/** Makes the handler of lent addresses, with `:id` at the end. */
export function createLentHandler({ store, now }: Dependencies): RouteHandler {
  return async (_request, { id }) => {
    const key = keyOf(id);
    const [text] = await store.settingsPage.takeNotices(key, PATH, now());
    if (text === undefined) return respondNotFound();
    await store.sessions.end(key);
    const loan = JSON.parse(text) as Loan;
    return "file" in loan ? respondFile(loan) : respondFrame(loan.html, loan.frame);
  };
}

/** Returns the key of the stored session that has the loan. No cookie matches it: a cookie's token has no space. */
function keyOf(number: string): Uint8Array {
  return hashToken(`lent ${number}`);
}
