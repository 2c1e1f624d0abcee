// Shows times in the viewer's time zone, adds buttons for copying and for choosing all, and updates the live part. The
// page below /admin works without this script. In the platform's admin, it is needed: see layout.tsx.

const POLL_MS = 2000;
/** Parameters of the address that App Bridge needs on every page. */
const PLATFORM_PARAMETERS = ["shop", "host", "embedded", "locale"];
/** Parameters that prove who opened the page. They must not stay in the address. */
const SPENT_PARAMETERS = ["id_token", "hmac", "timestamp"];
const ROOT = "/app";
const isFramed = document.querySelector("meta[name=shopify-api-key]") !== null;

function showLocalTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of root.querySelectorAll("time:not(.age)")) time.textContent = format.format(new Date(time.dateTime));
}

/**
 * Copies an element's text. Browsers offer the clipboard only on https and localhost. In a frame, the outer page must
 * also permit the clipboard. Otherwise, this selects the text, and copies with the older command. @returns success
 */
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return document.execCommand("copy");
  }
}

function offerCopying(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const copied = await copy(document.getElementById(button.dataset.copy));
      button.textContent = copied ? "Copied" : "Select and copy";
      say(button.textContent);
    });
  }
}

function offerChoosingAll(root) {
  for (const button of root.querySelectorAll("button[data-choose-all]")) {
    const boxes = [...document.querySelectorAll(`input[name="${button.dataset.chooseAll}"]`)];
    const isAll = () => boxes.every((box) => box.checked);
    const label = () => {
      button.textContent = isAll() ? "Choose none" : "Choose all";
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      const checked = !isAll();
      for (const box of boxes) box.checked = checked;
      label();
    });
    for (const box of boxes) box.addEventListener("change", label);
    label();
  }
}

/** Announces a text to screen readers. */
function say(text) {
  const status = document.getElementById("said");
  if (status !== null) status.textContent = text;
}

/** Replaces the live part, and keeps focus and scroll position. */
function replace(live, next) {
  const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolled = [...live.querySelectorAll(".overflow-auto")].map((each) => each.scrollLeft);
  const opened = new Map([...live.querySelectorAll("details")].map(({ id, open }) => [id, open]));
  const { announce } = live.dataset;
  const { scrollX, scrollY } = window;
  showLocalTimes(next);
  live.replaceChildren(...next.childNodes);
  for (const { name, value } of next.attributes) live.setAttribute(name, value);
  offerCopying(live);
  for (const each of live.querySelectorAll("details")) each.open = opened.get(each.id) ?? each.open;
  for (const [index, each] of live.querySelectorAll(".overflow-auto").entries()) each.scrollLeft = scrolled[index] ?? 0;
  // The focused element may be gone, for example the button of a retried delivery. Then the live part gets the focus.
  if (focused !== "") (document.getElementById(focused) ?? live).focus({ preventScroll: true });
  window.scrollTo(scrollX, scrollY);
  if (live.dataset.announce !== announce) say(live.dataset.announce ?? "");
}

function warningOf(text) {
  const warning = document.createElement("div");
  warning.className = "notice warning";
  warning.append(Object.assign(document.createElement("p"), { textContent: text }));
  return warning;
}

/** Whether text in the live part is selected. Replacing the live part would drop the selection. */
function isSelecting(live) {
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && live.contains(selection.anchorNode);
}

/** The shown text of each live part. */
const shownTexts = new WeakMap();

async function refresh(live) {
  const response = await fetch(`${location.pathname}${live.dataset.query ?? location.search}`, {
    headers: { "X-Part": "live" },
    credentials: "same-origin",
    cache: "no-store",
  });
  if (!live.isConnected) return;
  if (response.status === 401) {
    live.dataset.poll = "off";
    if (isFramed) return showFailure(NOT_CONFIRMED);
    say("You are signed out.");
    live.before(warningOf("You are signed out. The page below no longer updates."));
    return;
  }
  const text = response.ok ? await response.text() : shownTexts.get(live);
  if (text === shownTexts.get(live) || !live.isConnected || isSelecting(live)) return;
  const next = new DOMParser().parseFromString(text, "text/html").getElementById("live");
  if (next === null) return;
  replace(live, next);
  shownTexts.set(live, text);
}

function keepCurrent() {
  let asking = false;

  async function tick() {
    const live = document.getElementById("live");
    if (asking || live === null || document.hidden || live.dataset.poll !== "on") return;
    asking = true;
    // If the refresh fails or hangs (the computer may have slept), a later tick repeats it.
    const tooLate = new Promise((end) => setTimeout(end, 8 * POLL_MS));
    await Promise.race([refresh(live).catch(() => undefined), tooLate]);
    asking = false;
  }

  setInterval(tick, POLL_MS);
  document.addEventListener("visibilitychange", tick);
}

/** Adds the script's features to new content. */
function prepare(root) {
  showLocalTimes(root);
  offerCopying(root);
  offerChoosingAll(root);
  if (isFramed)
    for (const frame of root.querySelectorAll("iframe[data-address]")) preview(frame, frame.dataset.address);
}

// The rest of this file is for the page in a frame of the platform's admin.

const NOT_CONFIRMED = "Shopify could not confirm who you are. Nothing was changed.";
/** Path and query of the shown page. */
let shownAddress = "";
/** Counts the requested pages. Only the page that was requested last is shown. */
let lastVisit = 0;

/** Fetches a page and shows it. @param init options of the fetch, for a form */
async function visit(address, init = {}, remember = true) {
  lastVisit += 1;
  const number = lastVisit;
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(address, { ...init, headers: { Accept: "text/html" }, cache: "no-store" });
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    if (number !== lastVisit) return;
    if (next.getElementById("main") === null) throw new Error(`no page, but ${response.status}`);
    // App Bridge has already repeated the request with a new ID token. The page stays, so that typed text is not lost.
    if (response.status === 401) return showFailure(NOT_CONFIRMED);
    if (remember) rememberAddress(new URL(response.url));
    show(next);
    // The shop is still being connected. Fetch again: the server waits for the connection before it answers.
    if (next.querySelector("meta[http-equiv]") !== null) visit(response.url);
  } catch {
    if (number === lastVisit) showFailure("The page could not be loaded. Check your connection, then try again.");
  } finally {
    if (number === lastVisit) main.removeAttribute("aria-busy");
  }
}

/** Sets the frame's address: the page's, with the platform's parameters. So a reload finds the page again. */
function rememberAddress(url) {
  const query = new URLSearchParams(location.search);
  for (const name of [...query.keys()]) if (!PLATFORM_PARAMETERS.includes(name)) query.delete(name);
  for (const name of url.searchParams.keys()) query.delete(name);
  for (const [name, value] of url.searchParams) query.append(name, value);
  const [before, after] = [location, { pathname: url.pathname, search: `?${query}` }].map(withoutProof);
  history[after === before ? "replaceState" : "pushState"](null, "", `${after}${url.hash}`);
  shownAddress = after;
}

function withoutProof({ pathname, search }) {
  const query = new URLSearchParams(search);
  for (const name of SPENT_PARAMETERS) query.delete(name);
  return `${pathname}?${query}`;
}

function show(next) {
  document.title = next.title;
  const main = document.getElementById("main");
  const nextMain = next.getElementById("main");
  const [navigation, nextNavigation] = [document, next].map((each) => each.querySelector("header nav"));
  main.className = nextMain.className;
  main.replaceChildren(...nextMain.childNodes);
  if (navigation && nextNavigation) navigation.replaceChildren(...nextNavigation.childNodes);
  prepare(main);
  const heading = main.querySelector("h1");
  window.scrollTo(0, 0);
  heading?.focus({ preventScroll: true });
  say(heading?.textContent ?? document.title);
}

/** Shows a failure above the current page. */
function showFailure(text) {
  document.getElementById("failure")?.remove();
  const failure = Object.assign(warningOf(text), { id: "failure" });
  const again = Object.assign(document.createElement("button"), { type: "button", textContent: "Load the page again" });
  again.addEventListener("click", () => location.reload());
  failure.append(again);
  document.getElementById("main").prepend(failure);
  failure.scrollIntoView({ block: "nearest" });
  say(text);
}

/** Shows a document in the preview. A frame sends no ID token, so the server gives the document a one-time address. */
async function preview(frame, address, init = {}) {
  const response = await fetch(address, { ...init, cache: "no-store" }).catch(() => undefined);
  const lent = response?.headers.get("Location");
  if (lent) frame.src = lent;
}

function onClick(event) {
  const link = event.target.closest("a[href]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (link === null || event.defaultPrevented || !isPlain || link.target !== "" || link.hasAttribute("download"))
    return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || !isOurs(url)) {
    // A frame of the platform's admin must not show other pages.
    link.target = "_blank";
    link.rel = "noopener";
    return;
  }
  if (link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  visit(url);
}

function isOurs({ pathname }) {
  return pathname === ROOT || pathname.startsWith(`${ROOT}/`);
}

async function onSubmit(event) {
  const form = event.target;
  const { submitter } = event;
  if (event.defaultPrevented) return;
  event.preventDefault();
  const address = submitter?.getAttribute("formaction") ?? form.getAttribute("action");
  const fields = new URLSearchParams(new FormData(form, submitter));
  const frame = document.querySelector(`iframe[name="${submitter?.getAttribute("formtarget")}"]`);
  if (frame !== null) return preview(frame, address, { method: "POST", body: fields });
  if (form.method !== "post") return visit(`${address}?${fields}`);
  // A second click must not post the form again.
  if (form.dataset.sending === "yes") return;
  form.dataset.sending = "yes";
  await visit(address, { method: "POST", body: fields });
  form.dataset.sending = "no";
}

function stayInFrame() {
  rememberAddress(new URL(location.href));
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit);
  window.addEventListener("popstate", () => {
    // A link within the shown page also makes a history entry, and needs no fetch.
    if (withoutProof(location) === shownAddress) return;
    shownAddress = withoutProof(location);
    visit(location.href, {}, false);
  });
  // Runs when the user clicks a link in the platform's own menu.
  document.addEventListener("shopify:navigate", (event) => {
    const href = event.target.getAttribute("href");
    if (href !== null) visit(new URL(href, location.origin));
  });
}

keepCurrent();
// In a frame, this runs before the body exists.
if (isFramed) stayInFrame();
document.addEventListener("DOMContentLoaded", () => prepare(document));
