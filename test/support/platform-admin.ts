import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Server } from "bun";
import { type Browser, chromium } from "playwright-core";
import { idTokenClaims, signIdToken } from "./platform/id-token.ts";

/** The origin of the program in the browser. A TLS proxy answers there. */
export const APP_ORIGIN = "https://sds.example.com";
const ADMIN = "admin.shopify.com";
const CDN = "cdn.shopify.com";

/** The page of the platform's admin. The page shows the app in a frame, and gives ID tokens to the app. */
const ADMIN_PAGE = `<!doctype html><title>Admin</title><style>iframe { width: 100%; height: 90vh; border: 0 }</style>
<script>
const shop = new URLSearchParams(location.search).get("shop");
const ask = async (what, path) => (await fetch("/" + what + "?" + new URLSearchParams({ shop, path }))).text();
addEventListener("message", async ({ source, origin, data }) => {
  if (origin === "${APP_ORIGIN}" && data.ask) source.postMessage({ id: data.id, answer: await ask(data.ask, "/app") }, origin);
});
/** Clicks on the admin's own menu. */
const navigate = (href) => document.querySelector("iframe").contentWindow.postMessage({ navigate: href }, "*");
addEventListener("DOMContentLoaded", async () => {
  const frame = document.createElement("iframe");
  frame.src = await ask("address", new URLSearchParams(location.search).get("path") ?? "/app");
  document.body.append(frame);
});
</script><body>`;

/**
 * A stub of App Bridge. It adds ID tokens to fetches, retries a fetch once, reloads the app's page with a new ID token,
 * and follows links of the admin's menu.
 */
const APP_BRIDGE = `(() => {
  if (!document.querySelector("meta[name=shopify-api-key]").content) throw new Error("no client id before App Bridge");
  const waiting = new Map();
  const ask = (what) => new Promise((resolve) => {
    const id = crypto.randomUUID();
    waiting.set(id, resolve);
    parent.postMessage({ ask: what, id }, "https://${ADMIN}");
  });
  addEventListener("message", ({ origin, data }) => {
    if (origin !== "https://${ADMIN}") return;
    waiting.get(data.id)?.(data.answer);
    if (data.navigate === undefined) return;
    const link = document.createElement("a");
    link.setAttribute("href", data.navigate);
    document.body.append(link);
    link.dispatchEvent(new CustomEvent("shopify:navigate", { bubbles: true }));
    link.remove();
  });
  const fetchWithout = window.fetch;
  window.fetch = async (input, init) => {
    const request = new Request(input, init);
    if (new URL(request.url).origin !== location.origin) return fetchWithout(request);
    const send = async () => {
      const copy = request.clone();
      copy.headers.set("Authorization", "Bearer " + (await ask("token")));
      return fetchWithout(copy);
    };
    const response = await send();
    return response.headers.has("X-Shopify-Retry-Invalid-Session-Request") ? send() : response;
  };
  const query = new URLSearchParams(location.search);
  const reload = query.get("shopify-reload");
  const load = (address) => location.replace(address);
  if (reload !== null) ask("token").then((token) => {
    const address = new URL(reload);
    address.searchParams.set("id_token", token);
    load(address);
  });
  else if (!query.has("shop") && location.pathname.startsWith("/app")) ask("address").then(load);
})();`;

interface Options {
  /** Where the program listens. */
  program: () => string;
  clientId: string;
  clientSecret: string;
}

/**
 * The platform's admin for a browser: the admin's page at its real origin, a stub of App Bridge, and a TLS proxy in
 * front of the program. Chromium sends requests for all these hosts to this machine.
 */
export class PlatformAdmin {
  /** While true, new ID tokens have a wrong signature. */
  forges = false;
  /** Called before the page's script is sent to the browser. */
  beforeScript: () => Promise<void> = async () => undefined;
  private readonly server: Server<undefined>;
  private readonly options: Options;

  constructor(options: Options) {
    this.options = options;
    const file = (name: string) => readFileSync(join(import.meta.dir, "tls", name), "utf8");
    this.server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { key: file("valid.key"), cert: file("valid.pem") },
      fetch: (request) => this.serve(request),
    });
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }

  /**
   * Starts a Chromium that sends requests for the platform and the program to this server. Its contexts must ignore
   * certificate errors.
   */
  async launch(): Promise<Browser> {
    const executablePath = Bun.which("chromium") ?? Bun.which("chromium-browser");
    if (executablePath === null) throw new Error("Chromium is missing");
    const hosts = [ADMIN, CDN, new URL(APP_ORIGIN).hostname, "elsewhere.example"];
    const rules = hosts.map((host) => `MAP ${host} 127.0.0.1:${this.server.port}`).join(", ");
    const args = [
      `--host-resolver-rules=${rules}`,
      "--test-third-party-cookie-phaseout",
      // The context's option to ignore certificate errors does not apply to downloads.
      "--ignore-certificate-errors",
    ];
    return chromium.launch({ executablePath, chromiumSandbox: false, args });
  }

  /** The address of the app in the admin of a shop. */
  addressOf(shop: string, path = "/app"): string {
    return `https://${ADMIN}/store/${shop.split(".")[0]}/apps/client?${new URLSearchParams({ shop, path })}`;
  }

  /** The address that the admin's frame loads. */
  frameAddress(shop: string, path = "/app"): string {
    const host = Buffer.from(`${ADMIN}/store/${shop.split(".")[0]}`).toString("base64");
    const query = { embedded: "1", shop, host, hmac: "0".repeat(64), locale: "en", timestamp: String(Date.now()) };
    return `${APP_ORIGIN}${path}?${new URLSearchParams({ ...query, id_token: this.idToken(shop) })}`;
  }

  idToken(shop: string): string {
    const { clientId, clientSecret } = this.options;
    const secret = this.forges ? "wrong" : clientSecret;
    return signIdToken(idTokenClaims(shop, clientId, Date.now()), { secret });
  }

  private serve(request: Request): Response | Promise<Response> {
    const url = new URL(request.url);
    const type = (name: string) => ({ headers: { "Content-Type": name } });
    if (url.hostname === CDN) return new Response(APP_BRIDGE, type("text/javascript"));
    // After a test has stopped its program, a window of the browser can still send requests.
    if (url.origin.startsWith(APP_ORIGIN))
      return this.forward(request, url).catch(() => new Response(null, { status: 502 }));
    const shop = url.searchParams.get("shop") ?? "";
    if (url.pathname === "/token") return new Response(this.idToken(shop));
    if (url.pathname === "/address")
      return new Response(this.frameAddress(shop, url.searchParams.get("path") ?? undefined));
    return new Response(ADMIN_PAGE, type("text/html"));
  }

  private async forward(request: Request, { pathname, search }: URL): Promise<Response> {
    if (pathname === "/assets/page.js") await this.beforeScript();
    const headers = new Headers(request.headers);
    headers.set("X-Forwarded-Proto", "https");
    const body = request.method === "GET" ? null : await request.arrayBuffer();
    const { method } = request;
    const address = `${this.options.program()}${pathname}${search}`;
    return fetch(address, { method, headers, body, redirect: "manual", decompress: false });
  }
}
