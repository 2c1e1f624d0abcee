/** @jsxImportSource preact */
import { hashToken } from "../../actions/session.ts";
import { newRequestId, respondNotFound } from "../respond.ts";
import type { RouteHandler } from "../routes.ts";
import type { AdminDependencies, AdminFile, AdminPage } from "./admin-request.ts";
import { respondFile, respondFrame } from "./layout.tsx";
import type { Frame, Visitor } from "./visitor.ts";

/** Lifetime of a one-time address. It can be short, because our script opens documents at once. */
const LOAN_MS = 60_000;
const NUMBER_BYTES = 16;
const PATH = "/lent";

/** A document for a frame, or a file. */
type Loan = { html: string; frame: Frame } | AdminFile;

type Dependencies = Pick<AdminDependencies, "store" | "now" | "random">;

/**
 * Creates a one-time address for a document or a file, because frames and downloads in the platform's admin send no ID
 * token. Our script cannot make the document itself: the document would then have the page's policy, which forbids
 * `data:` styles. The document or file waits in the database, because another node may serve the address. The address
 * has a random number and nothing about the visitor.
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

/** Makes a page with a download link. Our script fetches every page, and cannot save the response as a file. */
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

/** Makes the handler of one-time addresses, whose path ends with `:id`. */
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

/** Returns the session key of a loan. No cookie matches the key, because a cookie's token never has a space. */
function keyOf(number: string): Uint8Array {
  return hashToken(`lent ${number}`);
}
