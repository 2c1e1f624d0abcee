/** @jsxImportSource preact */
import { counted } from "../../lib/text.ts";
import { UNAVAILABLE_HEADERS } from "../respond.ts";
import { respondMessage } from "./layout.tsx";

/**
 * Responds to a sign-in with a page that opens the settings. After a click on another site, such as web mail, a browser
 * follows a redirect without the cookie, because of SameSite=Strict. A refresh of our page sends the cookie.
 */
export function welcome(cookie: string): Response {
  const children = (
    <p>
      <a id="continue" href="/admin">
        Open the settings
      </a>
    </p>
  );
  return respondMessage({
    status: 200,
    title: "You are signed in",
    children,
    next: "/admin",
    headers: { "Set-Cookie": cookie },
  });
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
  return respondMessage({ status: 401, title: "You are not signed in", children: <HowToSignIn /> });
}

export function badLink(): Response {
  const children = (
    <>
      <p>This link is wrong, is too old, or was used before.</p>
      <HowToSignIn />
    </>
  );
  return respondMessage({ status: 401, title: "This link doesn't work", children });
}

export function tooMany(seconds: number): Response {
  const children = (
    <p>Too many wrong links were opened from your address. Try again in {counted(seconds, "second", "seconds")}.</p>
  );
  return respondMessage({
    status: 429,
    title: "Too many attempts",
    children,
    headers: { "Retry-After": String(seconds) },
  });
}

/** Asks the user to try again. @param reason a sentence */
export function tryAgain(requestId: string, reason: string): Response {
  const children = <p>{reason} Nothing was changed. Go back and try again in a few seconds.</p>;
  return respondMessage({
    status: 503,
    title: "Please try again",
    children,
    headers: { ...UNAVAILABLE_HEADERS, "X-Request-Id": requestId },
  });
}

export function signedOut(cookie: string): Response {
  return respondMessage({
    status: 200,
    title: "You are signed out",
    children: <HowToSignIn />,
    headers: { "Set-Cookie": cookie },
  });
}

/** Refuses a second post of a form: it would create a second key or secret. */
export function respondRepeatedForm(): Response {
  const children = (
    <p>
      This form was posted already, and was accepted then. <a href="/admin">Open the settings</a> to see the result.
    </p>
  );
  return respondMessage({ status: 403, title: "This form was posted before", children });
}

export function respondForeignForm(): Response {
  const children = (
    <p>
      This form is not from your current session, so nothing was changed. <a href="/admin">Open the settings</a> and try
      again.
    </p>
  );
  return respondMessage({ status: 403, title: "This form was refused", children });
}
