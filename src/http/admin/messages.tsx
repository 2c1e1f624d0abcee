/** @jsxImportSource preact */
import { counted } from "../../lib/text.ts";
import { newRequestId, UNAVAILABLE_HEADERS } from "../respond.ts";
import { respondMessage } from "./layout.tsx";
import type { Frame, Visitor } from "./visitor.ts";

/** Address of a sign-in link. */
const SIGN_IN = "/admin/sign-in";

/**
 * Responds to a GET of a sign-in link. Only the button uses up the link, because chat previews and mail scanners open
 * the link before the person does.
 */
export function askToSignIn(token: string): Response {
  const content = (
    <form id="sign-in" method="post" action={SIGN_IN}>
      <input type="hidden" name="token" value={token} />
      <p>This link opens the settings of a shop in this browser. It works once.</p>
      <button type="submit" id="open">
        Open the settings
      </button>
    </form>
  );
  return respondMessage(200, "Sign in", content);
}

/** Responds to a sign-in form. The form is on our site, so the browser follows the redirect with the new cookie. */
export function signedIn(cookie: string): Response {
  return new Response(null, {
    status: 303,
    headers: {
      Location: "/admin",
      "Set-Cookie": cookie,
      "Cache-Control": "no-store",
      "Referrer-Policy": "no-referrer",
      "X-Request-Id": newRequestId(),
    },
  });
}

function HowToSignIn() {
  return (
    <>
      <p>There are two ways to the settings of your shop:</p>
      <ul>
        <li>
          <strong>In Shopify's admin:</strong> choose Apps, and then this app. You need no link there.
        </li>
        <li>
          <strong>With a sign-in link:</strong> ask whoever runs this service for you. A link works once, within ten
          minutes. Then this browser stays signed in while you use the settings.
        </li>
      </ul>
      <p>
        Do you run the service? Read <a href="/docs/operating#the-settings-page">how to make a sign-in link</a>.
      </p>
    </>
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

/** Refuses a change of a shop that made too many changes within minutes. */
export function tooManyActions(seconds: number, { frame }: Visitor): Response {
  const content = (
    <p>
      Your shop made too many changes here within a few minutes, so this one was refused. Go back and try again in{" "}
      {counted(seconds, "second", "seconds")}.
    </p>
  );
  const headers = { "Retry-After": String(seconds) };
  return respondMessage(429, "Please wait a moment", content, { headers, frame });
}

/** Asks the user to try again. @param reason a sentence */
export function tryAgain(requestId: string, reason: string, frame: Frame | null): Response {
  const content = <p>{reason} Nothing was changed. Go back and try again in a few seconds.</p>;
  const headers = { ...UNAVAILABLE_HEADERS, "X-Request-Id": requestId };
  return respondMessage(503, "Please try again", content, { headers, frame });
}

export function signedOut(cookie: string): Response {
  return respondMessage(200, "You are signed out", <HowToSignIn />, { headers: { "Set-Cookie": cookie } });
}

/** Refuses a second post of a form. The post would create a second key or secret. */
export function respondRepeatedForm({ root, frame }: Visitor): Response {
  const content = (
    <p>
      This form was accepted when it was posted first. <a href={root}>Open the settings</a> to see the result.
    </p>
  );
  return respondMessage(403, "This form was posted before", content, { frame });
}

export function respondForeignForm({ root, frame }: Visitor): Response {
  const content = (
    <p>
      This form is not from your current session, so nothing was changed. <a href={root}>Open the settings</a> and try
      again.
    </p>
  );
  return respondMessage(403, "This form was refused", content, { frame });
}
