import type { BrowserContext } from "playwright-core";

const ORIGIN = "http://shop.test";

/**
 * A page of a shop with a widget. The shop's elements have fixed boxes: a growing widget does not change them, but a
 * style that applies outside the widget does. The width of a pseudo-element depends on the shop's counters and quotes,
 * so their changes show in this width.
 */
const PAGE = `<!doctype html><html class="dark page" lang="en"><head><title>Shop</title><style>
html, body { margin: 0; width: 800px; height: 900px; overflow: hidden; counter-reset: page }
body > *, #frame > :not(.sds-widget) { position: absolute; left: 20px; width: 300px; height: 30px; margin: 0; top: 0 }
#frame { top: 600px; width: 500px; height: 250px }
@keyframes page { from { margin-left: 0 } to { margin-left: 10px } }
.animated { animation: page 100s -50s paused linear }
@property --page { syntax: "<color>"; inherits: true; initial-value: lime }
.own { font-family: Outside, serif; border-color: var(--page) }
.counted { counter-increment: page }
.counted::before { content: counter(page) "/" counters(item, ".") open-quote; display: inline-block }
.counted::after { content: close-quote; display: inline-block }
</style></head><body class="x template">
<header class="card"><h1 id="title">Shop</h1></header>
<p class="card counted">Before</p>
<ol class="list"><li class="item">One</li></ol>
<div id="frame" class="x">
  <p class="card" title="before">Before the widget</p>
  <div class="sds-widget card x" id="widget" title="https://evil.test/title">
    <h2 class="title">Subscribe</h2>
    <p class="card md:foo" title="https://evil.test/title">Save <b class="b">10 %</b> <a href="#" class="link">more</a></p>
    <ul class="list"><li class="item a">Monthly</li><li class="item b"><p>Yearly</p></li></ul>
    <form><label class="x">Plan <input class="a" type="radio" name="plan" checked></label><button class="btn">Go</button></form>
    <details open><summary>Why</summary><p class="z">So</p></details>
  </div>
  <p class="card after" title="fixed">After the widget</p>
  <section class="card x"><p class="a b">Text <button class="btn">Buy</button></p></section>
</div>
<p class="card counted animated">After</p>
<p class="own counted">Own</p>
<footer class="x item"><p class="item">Footer</p></footer>
<script>
const style = document.head.appendChild(document.createElement("style"));
const outside = [...document.querySelectorAll("*")].filter((element) => !element.closest(".sds-widget") && element !== style);
const names = [...getComputedStyle(document.body)].concat(["--page", "--x", "--y", "--a", "--p", "--anim"]);
const snapshot = () =>
  outside.flatMap((element) =>
    ["", "::before", "::after"].map((pseudo) => {
      const computed = getComputedStyle(element, pseudo);
      if (pseudo !== "" && computed.content === "none") return ["none"];
      return names.map((name) => computed.getPropertyValue(name));
    }),
  );
const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve()));
const before = snapshot();
window.changesBy = async (css) => {
  style.textContent = css;
  await frame();
  const changes = [];
  snapshot().forEach((values, index) => {
    const at = values.findIndex((value, each) => value !== before[index][each]);
    if (at === -1) return;
    const { outerHTML } = outside[Math.floor(index / 3)];
    changes.push(outerHTML.slice(0, 40) + " " + names[at] + ": " + before[index][at] + " -> " + values[at]);
  });
  return changes;
};
const strayIn = (rules) =>
  [...rules].flatMap((rule) => {
    const name = rule.name ?? rule.style?.fontFamily ?? "";
    switch (rule.constructor.name) {
      case "CSSMediaRule":
      case "CSSSupportsRule":
        return strayIn(rule.cssRules);
      case "CSSLayerBlockRule":
        return name === "" ? strayIn(rule.cssRules) : [rule.cssText];
      case "CSSScopeRule":
        return rule.start === ".sds-widget" && rule.end === null ? [] : [rule.cssText];
      case "CSSKeyframesRule":
      case "CSSFontFaceRule":
      case "CSSPropertyRule":
        return /^"?(--)?sds-/.test(name) ? [] : [rule.cssText];
      default:
        return [rule.cssText];
    }
  });
window.strayRules = () => strayIn(style.sheet.cssRules);
</script></body></html>`;

export interface StyleProbe {
  /** Applies the style until the next call. @returns the changes of elements outside the widget */
  changesBy(css: string): Promise<string[]>;
  /**
   * Applies a scoped style.
   * @returns a list of the changes that `changesBy` finds, of rules outside `@scope`, and of names without our prefix
   */
  harmBy(css: string): Promise<string[]>;
  /** @param expression JavaScript that runs in the page */
  evaluate<T>(expression: string): Promise<T>;
  /**
   * @returns a picture of the page above the widget's frame. The picture ends 40 pixels above the frame, and a widget
   *   may paint at most 24 pixels outside its box
   */
  pictureOutside(): Promise<Buffer>;
  /** Addresses of the requests since the last call, without data URLs. */
  takeRequests(): Promise<string[]>;
}

/** Opens a shop's page. Every later request of the page fails. */
export async function openStyleProbe(context: BrowserContext): Promise<StyleProbe> {
  const page = await context.newPage();
  let requests: string[] = [];
  await context.route("**/*", async (route) => {
    const url = route.request().url();
    if (url === `${ORIGIN}/`) return route.fulfill({ contentType: "text/html; charset=utf-8", body: PAGE });
    requests.push(url);
    return route.abort();
  });
  await page.goto(`${ORIGIN}/`);
  const changesBy = (css: string) => page.evaluate<string[]>(`window.changesBy(${JSON.stringify(css)})`);
  return {
    changesBy,
    harmBy: async (css) => [...(await changesBy(css)), ...(await page.evaluate<string[]>("window.strayRules()"))],
    evaluate: (expression) => page.evaluate(expression),
    pictureOutside: () => page.screenshot({ clip: { x: 0, y: 0, width: 800, height: 560 } }),
    async takeRequests() {
      // The browser starts a request in its next frame, and reports it later.
      await page.waitForTimeout(100);
      const taken = requests;
      requests = [];
      return taken;
    },
  };
}
