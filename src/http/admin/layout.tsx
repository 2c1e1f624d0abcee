/** @jsxImportSource preact */
import { type ComponentChildren, h, type VNode } from "preact";
import { render } from "preact-render-to-string";
import { Mark } from "../look/mark.tsx";
import { newRequestId } from "../respond.ts";
import {
  type AdminFile,
  type AdminFrame,
  type AdminPage,
  type AdminTab,
  GUIDES,
  HOME,
  type Notice,
  SECTIONS,
  TABS,
} from "./admin-request.ts";
import { assetAddress } from "./assets.ts";
import { Form, Link, VisitorContext } from "./components.tsx";
import { PageNotices, type StandingNotices } from "./page-notices.tsx";
import type { Frame, Visitor } from "./visitor.ts";

/** Origin of the platform's admin, which shows our page in a frame. */
const PLATFORM_ADMIN = "https://admin.shopify.com";
const PLATFORM_SCRIPTS = "https://cdn.shopify.com/shopifycloud/";

/**
 * Returns the Content-Security-Policy of a page. It forbids inline scripts and styles, other hosts, and frames around
 * the page. If the page is in the platform's admin, the policy allows the platform's scripts. Then it also allows
 * frames by the platform's admin and by the shop's own admin. Documents in frames of our page have FRAME_POLICY.
 */
function policyOf(frame: Frame | null): string {
  const [scripts, ancestors] =
    frame === null ? ["", "'none'"] : [` ${PLATFORM_SCRIPTS}`, `${shopOf(frame)}${PLATFORM_ADMIN}`];
  return (
    `default-src 'none'; style-src 'self'; script-src 'self'${scripts}; img-src 'self'; connect-src 'self'; ` +
    `frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors ${ancestors}`
  );
}

function shopOf({ shop }: Frame): string {
  return shop === null ? "" : `https://${shop} `;
}

/**
 * The Content-Security-Policy of a document in a frame of our page. The document has a different origin than the page.
 * The document cannot run scripts, send requests or post forms, whatever its CSS contains.
 */
const FRAME_POLICY =
  "default-src 'none'; style-src data:; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; sandbox; " +
  "frame-ancestors 'self'";

const HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};

/** Responds with a whole page. */
export function respondPage(
  page: AdminPage,
  visitor: Visitor,
  notices: readonly Notice[],
  standing: StandingNotices = { load: null, alerts: [] },
): Response {
  const { shop, frame } = visitor;
  const html = (
    <VisitorContext.Provider value={visitor}>
      <Document title={`${page.title} · ${shop.domain}`} frame={frame}>
        <header class="container">
          {frame === null ? (
            <p class="shop">
              <Mark />{" "}
              <span id="shop" title={shop.domain}>
                {shop.domain}
              </span>
            </p>
          ) : null}
          <Navigation current={page.tab} />
          {frame === null ? (
            <Form action="/sign-out">
              <button type="submit" id="sign-out" class="secondary outline">
                Sign out
              </button>
            </Form>
          ) : null}
        </header>
        <main id="main" class="container" tabIndex={-1}>
          <PageNotices notices={notices} tab={page.tab} plan={shop.plan} {...standing} />
          <TitleRow {...page} />
          <Tabs current={page.tab} />
          {page.content}
        </main>
      </Document>
    </VisitorContext.Provider>
  );
  return respondHtml(page.status ?? 200, html, frame);
}

/**
 * Responds with a document that our page shows in an inner frame.
 * @param html from `renderFrame`
 * @param around the frame that shows our page in the platform's admin; null outside of that admin
 */
export function respondFrame(html: string, around: Frame | null): Response {
  const ancestors = around === null ? "" : ` ${shopOf(around)}${PLATFORM_ADMIN}`;
  const headers = { "Content-Security-Policy": `${FRAME_POLICY}${ancestors}`, "X-Request-Id": newRequestId() };
  return new Response(html, { headers: { ...HEADERS, ...headers } });
}

export function renderFrame({ frame }: AdminFrame): string {
  return `<!doctype html>${render(frame)}`;
}

/** Responds with a file that the browser saves, and never shows as a page. */
export function respondFile({ file: { name, json } }: AdminFile): Response {
  return new Response(json, {
    headers: {
      ...HEADERS,
      "Content-Type": "application/json; charset=utf-8",
      "Content-Disposition": `attachment; filename="${name}"`,
      "Content-Security-Policy": "default-src 'none'; sandbox",
      "X-Request-Id": newRequestId(),
    },
  });
}

/** Responds with the live part of a page, for the script. */
export function respondPart(part: VNode, visitor: Visitor): Response {
  const html = <VisitorContext.Provider value={visitor}>{part}</VisitorContext.Provider>;
  const headers = { ...HEADERS, "Content-Security-Policy": policyOf(visitor.frame), "X-Request-Id": newRequestId() };
  return new Response(render(html), { headers });
}

interface MessageOptions {
  /** The page that the browser opens next, without a click. */
  next?: string;
  headers?: Record<string, string>;
  /** Set if the platform's admin shows the page in a frame. */
  frame?: Frame | null;
}

/** Responds with a page that shows no data of a shop: for signing in and out, and for refusals. */
export function respondMessage(
  status: number,
  title: string,
  children: ComponentChildren,
  { next, headers = {}, frame = null }: MessageOptions = {},
): Response {
  const html = (
    <Document title={title} frame={frame} {...(next !== undefined && { next })}>
      <main id="main" class="container message" tabIndex={-1}>
        <Mark />
        <h1 tabIndex={-1}>{title}</h1>
        {children}
      </main>
    </Document>
  );
  return respondHtml(status, html, frame, headers);
}

function respondHtml(status: number, html: VNode, frame: Frame | null, headers: Record<string, string> = {}): Response {
  return new Response(`<!doctype html>${render(html)}`, {
    status,
    headers: {
      ...HEADERS,
      "Content-Security-Policy": policyOf(frame),
      "X-Request-Id": newRequestId(),
      ...headers,
    },
  });
}

interface DocumentProps {
  title: string;
  frame: Frame | null;
  next?: string;
  children: ComponentChildren;
}

/**
 * In the platform's admin, a link needs the page's script, because only a fetch has an ID token. So the script runs
 * there before any link is shown. Without the script, a link would open the first page.
 */
function Document({ title, frame, next, children }: DocumentProps) {
  return (
    <html lang="en">
      <head>
        {frame === null ? null : <PlatformScript {...frame} />}
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {next === undefined ? null : <meta http-equiv="refresh" content={`0; url=${next}`} />}
        <title>{title}</title>
        <link rel="icon" href={assetAddress("/assets/icon.svg")} />
        <link rel="stylesheet" href={assetAddress("/assets/page.css")} />
        <script src={assetAddress("/assets/page.js")} defer={frame === null} />
      </head>
      <body class={frame === null ? undefined : "framed"}>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <p id="said" class="visually-hidden" role="status" />
        {frame === null ? null : <PlatformNavigation />}
        {children}
      </body>
    </html>
  );
}

/** App Bridge must be the first script, and come from the platform's address, because the platform updates it. */
function PlatformScript({ clientId }: Frame) {
  return (
    <>
      <meta name="shopify-api-key" content={clientId} />
      <script src={`${PLATFORM_SCRIPTS}app-bridge.js`} />
    </>
  );
}

/** Lists the sections. The platform's admin reads these elements and shows the sections in its own menu. */
function PlatformNavigation() {
  return h("s-app-nav", null, [
    h("s-link", { rel: "home", href: "/app" }, TABS[HOME]),
    ...Object.entries(SECTIONS)
      .filter(([, [path]]) => path !== HOME)
      .map(([name, [path]]) => h("s-link", { href: `/app${path}` }, name)),
  ]);
}

function TitleRow({ title, trail, actions, tab }: AdminPage) {
  const docs = (
    <a id="documentation" class="about" href={`/docs/${GUIDES[tab]}`}>
      Docs
    </a>
  );
  return (
    <>
      {trail === undefined ? null : (
        <div class="above-title">
          <p class="trail">
            <Link to={trail.to}>{trail.name}</Link> /
          </p>
          {docs}
        </div>
      )}
      <div class="title">
        <h1 tabIndex={-1}>{title}</h1>
        <div class="actions">
          {trail === undefined ? docs : null}
          {actions}
        </div>
      </div>
    </>
  );
}

function Navigation({ current }: { current: AdminTab }) {
  return (
    <nav aria-label="Sections">
      <ul>
        {sections().map(([name, tabs]) => (
          <li>
            <Link to={tabs[0]} {...(tabs.includes(current) && { "aria-current": "page" as const })}>
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** The tabs of the current section. A section with only one tab shows no tabs. */
function Tabs({ current }: { current: AdminTab }) {
  const [name, tabs] = sections().find(([, each]) => each.includes(current)) ?? ["", []];
  if (tabs.length < 2) return null;
  return (
    <nav class="tabs" aria-label={name}>
      <ul>
        {tabs.map((path) => (
          <li>
            <Link to={path} {...(path === current && { "aria-current": "page" as const })}>
              {TABS[path]}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function sections(): [name: string, tabs: readonly [AdminTab, ...AdminTab[]]][] {
  return Object.entries(SECTIONS);
}
