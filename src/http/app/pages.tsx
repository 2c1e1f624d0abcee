/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { render } from "preact-render-to-string";
import { assetAddress } from "../admin/assets.ts";
import { newRequestId } from "../respond.ts";
import { FRAMERS_WITHOUT_SHOP, framersOf } from "./entry-address.ts";

/** The platform's script, which every framed page needs. It comes from this address only: the platform changes it. */
const APP_BRIDGE = "https://cdn.shopify.com/shopifycloud/app-bridge.js";
/** How long the page waits before it looks again whether the shop is connected. */
const CONNECTING_REFRESH_S = 2;

/**
 * Returns the policy of a page in the platform's admin. Like the policy of the settings page, it forbids inline scripts
 * and styles. App Bridge is the only script of another host.
 * @param framers value of `frame-ancestors`
 */
function framePolicy(framers: string): string {
  return (
    "default-src 'none'; style-src 'self'; script-src 'self' https://cdn.shopify.com/shopifycloud/; " +
    "img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; " +
    `frame-ancestors ${framers}`
  );
}

/** The tags that every framed page has first in its head. */
function AppBridge({ clientId }: { clientId: string }) {
  return (
    <>
      <meta name="shopify-api-key" content={clientId} />
      <script src={APP_BRIDGE} />
    </>
  );
}

interface AppMessage {
  status: number;
  title: string;
  content: ComponentChildren;
  /** undefined if the page must not be framed. */
  shop?: string | undefined;
  /** Without it, the page has no script. */
  clientId?: string;
  framers?: string;
  /** The address that the browser loads next, and after how many seconds. */
  next?: { address: string; afterS: number };
  headers?: Record<string, string>;
}

/** Responds with a page without data of a shop. */
function respondMessage({ status, title, content, shop, clientId, next, ...more }: AppMessage): Response {
  const { framers = framersOf(shop), headers = {} } = more;
  const html = (
    <html lang="en">
      <head>
        {clientId === undefined ? null : <AppBridge clientId={clientId} />}
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {next === undefined ? null : <meta http-equiv="refresh" content={`${next.afterS}; url=${next.address}`} />}
        <title>{title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={assetAddress("/admin/admin.css")} />
      </head>
      <body>
        <main id="main" class="container message" tabIndex={-1}>
          <h1>{title}</h1>
          {content}
        </main>
      </body>
    </html>
  );
  return new Response(`<!doctype html>${render(html)}`, {
    status,
    headers: { ...headersOf(framers), "Content-Type": "text/html; charset=utf-8", ...headers },
  });
}

/** The headers of every answer below /app, without its type. */
function headersOf(framers: string): Record<string, string> {
  return {
    "Content-Security-Policy": framePolicy(framers),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Request-Id": newRequestId(),
  };
}

/** Redirects a document. A fetch is never redirected, because App Bridge could not repeat it with a new ID token. */
export function redirectDocument(address: string): Response {
  return new Response(null, { status: 302, headers: { ...headersOf("'none'"), Location: address } });
}

/**
 * Responds with App Bridge alone, which loads an address with a new ID token.
 * @param shop undefined if the address names no shop. Then App Bridge has to find the way by itself.
 */
export function respondBounce(clientId: string, shop: string | undefined): Response {
  return respondMessage({
    status: 200,
    title: "Opening the app",
    content: <p>If nothing happens, open the app again from your shop's admin.</p>,
    clientId,
    framers: shop === undefined ? FRAMERS_WITHOUT_SHOP : framersOf(shop),
  });
}

/** Responds to an address that no admin of the platform makes. */
export function respondBadAddress(): Response {
  return respondMessage({
    status: 400,
    title: "This address is wrong",
    content: <p>Open the app from your shop's admin.</p>,
  });
}

export function respondNotSetUp(): Response {
  return respondMessage({
    status: 503,
    title: "The app is not set up",
    content: (
      <p>
        The operator of this service has to set <code>SDS_PLATFORM_CLIENT_ID</code> and{" "}
        <code>SDS_PLATFORM_SECRET_FILE</code>.
      </p>
    ),
  });
}

/** Responds to a fetch without a good ID token. App Bridge then repeats the fetch once, with a new ID token. */
export function respondNoToken(): Response {
  return respondMessage({
    status: 401,
    title: "Your session has ended",
    content: <p>Open the app again from your shop's admin.</p>,
    headers: { "X-Shopify-Retry-Invalid-Session-Request": "1" },
  });
}

/** Responds to a fetch of another site. */
export function respondForeignFetch(): Response {
  return respondMessage({
    status: 403,
    title: "This request was refused",
    content: <p>It comes from another site, so nothing was changed.</p>,
  });
}

/** A framed page that shows nothing of the shop. */
interface FramedMessage {
  clientId: string;
  shop: string;
  /** The address of the page that was asked for. */
  reload: string;
}

export function respondConnecting({ reload, ...page }: FramedMessage): Response {
  return respondMessage({
    ...page,
    status: 200,
    title: "Connecting your shop",
    content: (
      <>
        <p role="status">This takes a few seconds more than usual. The page opens by itself.</p>
        <p>
          <a href={reload}>Look again</a>
        </p>
      </>
    ),
    next: { address: reload, afterS: CONNECTING_REFRESH_S },
  });
}

const REASONS = {
  platform: "Your shop could not be connected, because Shopify gave no access at the moment. Nothing was changed.",
  token: "Shopify could not confirm who you are. Nothing was changed.",
  removal:
    "The data of an earlier installation is being deleted, as the privacy rules ask. This takes some minutes at most.",
};

export function respondTryAgain(reason: keyof typeof REASONS, { reload, ...page }: FramedMessage): Response {
  return respondMessage({
    ...page,
    status: 503,
    title: "Please try again",
    content: (
      <>
        <p>{REASONS[reason]}</p>
        <p>
          <a href={reload}>Try again</a>
        </p>
      </>
    ),
    headers: { "Retry-After": "5" },
  });
}
