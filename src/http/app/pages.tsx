/** @jsxImportSource preact */
import { respondMessage } from "../admin/layout.tsx";
import type { Frame } from "../admin/visitor.ts";
import { newRequestId } from "../respond.ts";

/** Redirects a document. A fetch is never redirected, because App Bridge could not repeat it with a new ID token. */
export function redirectDocument(address: string): Response {
  return new Response(null, {
    status: 302,
    headers: {
      Location: address,
      "Cache-Control": "no-store",
      "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
      "X-Request-Id": newRequestId(),
    },
  });
}

/** Responds with a page that contains only App Bridge. App Bridge then loads the requested page with a new ID token. */
export function respondBounce(frame: Frame): Response {
  const content = <p>If nothing happens, open the app again from your shop's admin.</p>;
  return respondMessage(200, "Opening the app", content, { frame });
}

/** Responds to an address that does not come from the platform's admin. */
export function respondBadAddress(): Response {
  return respondMessage(400, "This address is wrong", <p>Open the app from your shop's admin.</p>);
}

export function respondNotSetUp(): Response {
  const content = (
    <p>
      The operator of this service has to set <code>SDS_PLATFORM_CLIENT_ID</code> and{" "}
      <code>SDS_PLATFORM_SECRET_FILE</code>.
    </p>
  );
  return respondMessage(503, "The app is not set up", content);
}

/** Responds to a fetch without a good ID token. App Bridge then repeats the fetch once, with a new ID token. */
export function respondNoToken(): Response {
  const headers = { "X-Shopify-Retry-Invalid-Session-Request": "1" };
  const content = <p>Open the app again from your shop's admin.</p>;
  return respondMessage(401, "Your session has ended", content, { headers });
}

/** Responds to a fetch from another site. */
export function respondForeignFetch(): Response {
  const content = <p>The request comes from another site, so nothing was changed.</p>;
  return respondMessage(403, "This request was refused", content);
}

/** Responds with a page that tries again by itself. @param reload the address of the requested page */
export function respondConnecting(frame: Frame, reload: string): Response {
  const content = (
    <>
      <p role="status">This takes some seconds more than usual. The page opens by itself.</p>
      <p>
        <a href={reload}>Look again</a>
      </p>
    </>
  );
  // The next request waits some seconds for the connection. Meanwhile the browser shows this page.
  return respondMessage(200, "Connecting your shop", content, { frame, next: reload });
}

const REASONS = {
  platform: "Your shop could not be connected, because Shopify gave no access at the moment. Nothing was changed.",
  token: "Shopify could not confirm who you are. Nothing was changed.",
  removal:
    "The data of an earlier installation is being deleted, as the privacy rules ask. This takes some minutes at most.",
};

/** Responds with a page that has a link to try again. @param reload the address of the requested page */
export function respondTryAgain(reason: keyof typeof REASONS, frame: Frame, reload: string): Response {
  const content = (
    <>
      <p>{REASONS[reason]}</p>
      <p>
        <a href={reload}>Try again</a>
      </p>
    </>
  );
  return respondMessage(503, "Please try again", content, { frame, headers: { "Retry-After": "5" } });
}
