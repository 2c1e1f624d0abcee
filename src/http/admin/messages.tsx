/** @jsxImportSource preact */
import { counted } from "../../lib/text.ts";
import { UNAVAILABLE_HEADERS } from "../respond.ts";
import { respondMessage } from "./layout.tsx";

/**
 * Responds to a sign-in with a page that opens the settings. It is no redirect: after a click on another site, such as
 * web mail, a browser follows a redirect without the cookie, because of SameSite=Strict. A refresh of our own page
 * sends the cookie.
 */
export function welcome(cookie: string): Response {
  const content = (
    <p>
      <a id="continue" href="/admin">
        Open the settings
      </a>
    </p>
  );
  return respondMessage(200, "You are signed in", content, { next: "/admin", headers: { "Set-Cookie": cookie } });
}

function HowToSignIn() {
  return (
    <p>
      Ask the operator of this service for a sign-in link. If that is you, run <code>sds admin link</code>. A link works
      once, within ten minutes.
    </p>
  );
}

export function signedOutPage(): Response {
  return respondMessage(401, "You are not signed in", <HowToSignIn />);
}

export function badLink(): Response {
  const content = (
    <>
      <p>This link is wrong, is too old, or was used before.</p>
      <HowToSignIn />
    </>
  );
  return respondMessage(401, "This link doesn't work", content);
}

export function tooMany(seconds: number): Response {
  const content = (
    <p>Too many wrong links were opened from your address. Try again in {counted(seconds, "second", "seconds")}.</p>
  );
  return respondMessage(429, "Too many attempts", content, { headers: { "Retry-After": String(seconds) } });
}

/** Asks the user to try again. @param reason a sentence */
export function tryAgain(requestId: string, reason: string): Response {
  const content = <p>{reason} Nothing was changed. Go back and try again in a few seconds.</p>;
  const headers = { ...UNAVAILABLE_HEADERS, "X-Request-Id": requestId };
  return respondMessage(503, "Please try again", content, { headers });
}

export function signedOut(cookie: string): Response {
  return respondMessage(200, "You are signed out", <HowToSignIn />, { headers: { "Set-Cookie": cookie } });
}

/** Refuses a second post of a form: it would create a second key or secret. */
export function respondRepeatedForm(): Response {
  const content = (
    <p>
      This form was posted already, and was accepted then. <a href="/admin">Open the settings</a> to see the result.
    </p>
  );
  return respondMessage(403, "This form was posted before", content);
}

export function respondForeignForm(): Response {
  const content = (
    <p>
      This form is not from your current session, so nothing was changed. <a href="/admin">Open the settings</a> and try
      again.
    </p>
  );
  return respondMessage(403, "This form was refused", content);
}
