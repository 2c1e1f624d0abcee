/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { render } from "preact-render-to-string";
import { noAccess } from "../../actions/access.ts";
import { hasAccess, type Shop } from "../../domain/shop.ts";
import { sentence } from "../../lib/text.ts";
import { newRequestId } from "../respond.ts";
import {
  type AdminFrame,
  type AdminPage,
  type AdminSection,
  type Notice,
  SECTIONS,
  STOREFRONT,
} from "./admin-request.ts";
import { assetAddress } from "./assets.ts";
import { Copyable, CsrfField, NewSecret } from "./components.tsx";

/**
 * Forbids inline scripts and styles, other hosts, and a frame around the page. `data:` is for the empty icon. Frames in
 * the page have FRAME_POLICY.
 */
const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/**
 * The policy of a document in a frame. The document has another origin than the page. It can run no script, send no
 * request and post no form, whatever CSS it has.
 */
const FRAME_POLICY =
  "default-src 'none'; style-src data:; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; " +
  "frame-ancestors 'self'; sandbox";

const HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": POLICY,
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};

/** Responds with a whole page of a session. */
export function respondPage(page: AdminPage, shop: Shop, csrf: string, notices: readonly Notice[]): Response {
  const html = (
    <Document title={`${page.title} · ${shop.domain}`}>
      <header class="container">
        <p class="shop">
          <strong>Settings</strong> <span id="shop">{shop.domain}</span>
        </p>
        <Navigation current={page.section} />
        <form method="post" action="/admin/sign-out">
          <CsrfField csrf={csrf} />
          <button type="submit" id="sign-out" class="secondary outline">
            Sign out
          </button>
        </form>
      </header>
      <main id="main" class="container" tabIndex={-1}>
        <p id="said" class="visually-hidden" role="status" />
        <div id="notices" role="status">
          {notices.map((notice) => (
            <NoticeBox {...notice} />
          ))}
        </div>
        {hasAccess(shop.plan) ? null : <PlanNotice />}
        <h1>{page.title}</h1>
        {page.content}
      </main>
    </Document>
  );
  return respondHtml(page.status ?? 200, html);
}

/** Responds with the document of a frame. */
export function respondFrame({ frame }: AdminFrame): Response {
  return respondHtml(200, frame, { "Content-Security-Policy": FRAME_POLICY });
}

/** Responds with the live part of a page, for the script. */
export function respondPart(part: VNode): Response {
  return new Response(render(part), { headers: { ...HEADERS, "X-Request-Id": newRequestId() } });
}

/**
 * Responds with a page without data of a shop: for signing in and out, and for refusals.
 * @param next the page that the browser opens next, without a click
 */
export function respondMessage(
  status: number,
  title: string,
  children: ComponentChildren,
  { next, headers = {} }: { next?: string; headers?: Record<string, string> } = {},
): Response {
  const html = (
    <Document title={title} {...(next !== undefined && { next })}>
      <main id="main" class="container message">
        <h1>{title}</h1>
        {children}
      </main>
    </Document>
  );
  return respondHtml(status, html, headers);
}

function respondHtml(status: number, html: VNode, headers: Record<string, string> = {}): Response {
  return new Response(`<!doctype html>${render(html)}`, {
    status,
    headers: { ...HEADERS, "X-Request-Id": newRequestId(), ...headers },
  });
}

function Document({ title, next, children }: { title: string; next?: string; children: ComponentChildren }) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {next === undefined ? null : <meta http-equiv="refresh" content={`0; url=${next}`} />}
        <title>{title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={assetAddress("/admin/admin.css")} />
        <script src={assetAddress("/admin/admin.js")} defer />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        {children}
      </body>
    </html>
  );
}

function Navigation({ current }: { current: AdminSection }) {
  const entry = ([path, name]: [string, string]) => (
    <li>
      <a href={path} {...(path === current && { "aria-current": "page" as const })}>
        {name}
      </a>
    </li>
  );
  const [storefront = [], others = []] = [true, false].map((isStorefront) =>
    Object.entries(SECTIONS).filter(([path]) => STOREFRONT.includes(path) === isStorefront),
  );
  return (
    <nav aria-label="Settings">
      <ul>{others.map(entry)}</ul>
      <ul aria-labelledby="storefront">
        <li id="storefront">Storefront:</li>
        {storefront.map(entry)}
      </ul>
    </nav>
  );
}

function NoticeBox({ text, tone, secret, copy }: Notice) {
  return (
    <div class={tone === "warning" ? "notice warning" : "notice"}>
      <p>{text}</p>
      {secret === undefined ? null : <NewSecret {...secret} />}
      {copy === undefined ? null : <Copyable id="new-secret" {...copy} />}
    </div>
  );
}

function PlanNotice() {
  return (
    <div id="plan-notice" class="notice warning">
      <p>
        {sentence(noAccess("API access, webhooks or workflow triggers"))} At present, API calls are answered with 403,
        no event is queued, and the widget's stylesheet is empty. <a href="/admin/plan">See the plan</a>
      </p>
    </div>
  );
}
