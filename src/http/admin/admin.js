// These features need a script: times in the viewer's time zone, copying, choosing all, and live lists. All others work
// without a script.

const POLL_MS = 2000;

function showLocalTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  for (const time of root.querySelectorAll("time[datetime]")) time.textContent = format.format(new Date(time.dateTime));
}

/**
 * Copies an element's text. A browser offers the clipboard only on https and localhost. Elsewhere this selects the text
 * and tries the older command.
 */
async function copy(element) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(element.textContent);
  getSelection().selectAllChildren(element);
  if (!document.execCommand("copy")) throw new Error("not copied");
}

function offerCopying(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const copied = await copy(document.getElementById(button.dataset.copy)).then(
        () => true,
        () => false,
      );
      button.textContent = copied ? "Copied" : "Select and copy";
      say(button.textContent);
    });
  }
}

function offerChoosingAll() {
  for (const button of document.querySelectorAll("button[data-choose-all]")) {
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
  const { announce } = live.dataset;
  const { scrollX, scrollY } = window;
  showLocalTimes(next);
  live.replaceChildren(...next.childNodes);
  for (const { name, value } of next.attributes) live.setAttribute(name, value);
  offerCopying(live);
  for (const [index, each] of live.querySelectorAll(".overflow-auto").entries()) each.scrollLeft = scrolled[index] ?? 0;
  // The focused element may be gone, for example the button of a retried delivery. Then the live part gets the focus.
  if (focused !== "") (document.getElementById(focused) ?? live).focus({ preventScroll: true });
  window.scrollTo(scrollX, scrollY);
  if (live.dataset.announce !== announce) say(live.dataset.announce ?? "");
}

/** Whether text in the live part is selected. Replacing the live part would drop the selection. */
function isSelecting(live) {
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && live.contains(selection.anchorNode);
}

function keepCurrent(live) {
  let shown;
  let asking = false;

  async function ask() {
    const response = await fetch(location.pathname, {
      headers: { "X-Part": "live" },
      credentials: "same-origin",
      cache: "no-store",
    });
    if (response.status === 401) {
      live.dataset.poll = "off";
      say("You are signed out.");
      const stopped = document.createElement("p");
      stopped.className = "notice warning";
      stopped.textContent = "You are signed out. The page below does not update any more.";
      live.before(stopped);
      return;
    }
    const text = response.ok ? await response.text() : shown;
    if (text === shown || isSelecting(live)) return;
    const next = new DOMParser().parseFromString(text, "text/html").getElementById("live");
    if (next === null) return;
    replace(live, next);
    shown = text;
  }

  async function tick() {
    if (asking || document.hidden || live.dataset.poll !== "on") return;
    asking = true;
    // The next tick retries.
    await ask().catch(() => undefined);
    asking = false;
  }

  setInterval(tick, POLL_MS);
  document.addEventListener("visibilitychange", tick);
}

showLocalTimes(document);
offerCopying(document);
offerChoosingAll();
const live = document.getElementById("live");
if (live !== null) keepCurrent(live);
