import { expect, test } from "bun:test";
import fc from "fast-check";
import { scopeStylesheet } from "../../src/domain/style/stylesheet.ts";
import { arbitraryStyle } from "../support/arbitrary-styles.ts";
import { HOSTILE_STYLES } from "../support/hostile-styles.ts";
import { openContext, sharedBrowser } from "../support/settings-page.ts";
import { openStyleProbe, type StyleProbe } from "../support/style-probe.ts";

const browser = sharedBrowser();
const probe = async () => openStyleProbe(await openContext(browser(), { viewport: { width: 800, height: 900 } }));

function scoped(source: string): string {
  const result = scopeStylesheet(source);
  if (!("css" in result)) throw new Error(`refused: ${result.refused.reason}`);
  return result.css;
}

/** @returns the number of styles that were not refused */
async function expectHarmless(probe: StyleProbe, styles: readonly string[]): Promise<number> {
  let accepted = 0;
  for (const source of styles) {
    const result = scopeStylesheet(source);
    if (!("css" in result)) continue;
    accepted++;
    const { css } = result;
    expect({ source, css, harm: await probe.harmBy(css) }).toEqual({ source, css, harm: [] });
  }
  expect(await probe.takeRequests()).toEqual([]);
  return accepted;
}

test("the probe sees what styles do to the page as they were written", async () => {
  const { changesBy, takeRequests } = await probe();
  expect(await changesBy(".sds-widget p { color: red }")).toEqual([]);
  expect(await changesBy("p { color: red }")).not.toEqual([]);
  expect(await changesBy(".sds-widget { & ~ p { color: red } }")).not.toEqual([]);
  expect(await changesBy("@keyframes page { to { color: red } }")).not.toEqual([]);
  expect(await changesBy(".sds-widget p { counter-increment: page 99 }")).not.toEqual([]);
  expect(await changesBy(".sds-widget::before { content: open-quote }")).not.toEqual([]);
  expect(await takeRequests()).toEqual([]);
  await changesBy(`@import "https://evil.test/1"; .sds-widget p { background: \\75rl(https://evil.test/2) }`);
  expect((await takeRequests()).sort()).toEqual(["https://evil.test/1", "https://evil.test/2"]);
});

test("hostile styles are refused, or neither leave the widget nor make a request", async () => {
  expect(new Set(HOSTILE_STYLES).size).toBe(HOSTILE_STYLES.length);
  expect(await expectHarmless(await probe(), HOSTILE_STYLES)).toBeGreaterThan(40);
});

test("fuzzed styles are refused, or neither leave the widget nor make a request", async () => {
  const styles = fc.sample(arbitraryStyle, { numRuns: 200, seed: 22 });
  expect(await expectHarmless(await probe(), styles)).toBeGreaterThan(60);
});

test("a style applies in the widget", async () => {
  const { changesBy, evaluate, takeRequests } = await probe();
  const css = scoped(`
    @keyframes fade { from { opacity: 0 } to { opacity: .5 } }
    @property --sds-gap { syntax: "<length>"; inherits: true; initial-value: 3px }
    :root { --brand: rgb(1, 2, 3); --anim: fade 1s both; container-type: inline-size; padding-left: 5px }
    * { letter-spacing: 1px }
    html.dark .card { color: red }
    .card { color: var(--brand); &.md\\:foo { margin-top: 4px } b { color: rgb(4, 5, 6) } > a:not(.x) { color: rgb(7, 8, 9) } }
    .list > li:nth-child(2 of .item) { color: rgb(9, 9, 9); @media (width > 1px) { margin-left: var(--sds-gap) } }
    @container (width > 1px) { h2 { animation: var(--anim) } h2::before { content: "<"; counter-increment: sds-a } }
    @supports (display: grid) and (not selector(:nonsense)) { .btn { display: grid } }
  `);
  expect(await changesBy(css)).toEqual([]);
  const style = (selector: string, property: string, pseudo = "") =>
    evaluate<string>(
      `getComputedStyle(document.querySelector(${JSON.stringify(selector)}), "${pseudo}").getPropertyValue("${property}")`,
    );
  expect(await style("#widget", "padding-left")).toBe("5px");
  expect(await style("#widget", "letter-spacing")).toBe("1px");
  expect(await style("#widget", "contain")).toContain("paint");
  expect(await style("#widget summary", "letter-spacing")).toBe("1px");
  expect(await style("#widget p.card", "color")).toBe("rgb(1, 2, 3)");
  expect(await style("#widget p.card", "margin-top")).toBe("4px");
  expect(await style("#widget .b", "color")).toBe("rgb(4, 5, 6)");
  expect(await style("#widget a", "color")).toBe("rgb(7, 8, 9)");
  expect(await style("#widget li.b", "color")).toBe("rgb(9, 9, 9)");
  expect(await style("#widget li.b", "margin-left")).toBe("3px");
  expect(await style("#widget h2", "content", "::before")).toBe('"<"');
  expect(await style("#widget .btn", "display")).toBe("grid");
  expect(
    await evaluate<string[]>(`document.querySelector("#widget h2").getAnimations().map((each) => each.animationName)`),
  ).toEqual(["sds-fade"]);
  expect(await takeRequests()).toEqual([]);
});

test("nothing in the widget is painted outside its box", async () => {
  const { changesBy, pictureOutside } = await probe();
  await changesBy("");
  const before = await pictureOutside();
  await changesBy(".sds-widget p { position: absolute; inset: -900px; background: red }");
  expect((await pictureOutside()).equals(before)).toBe(false);
  for (const source of [
    "p { position: absolute; inset: -900px; background: red; z-index: 2147483647 }",
    ":root { contain: none !important; overflow-clip-margin: 999px !important } p { position: absolute; inset: -900px; background: red }",
    ":root::before { content: ''; position: absolute; inset: -900px; background: red }",
    "p { transform: scale(1000); background: red }",
    "p { margin: -900px; padding: 900px; background: red }",
    "p { box-shadow: 0 0 0 900px red; outline: 900px solid red; filter: drop-shadow(0 -300px red) }",
    "@keyframes a { from, to { contain: none } } :root { animation: a 9s } p { position: absolute; inset: -900px; background: red }",
  ]) {
    await changesBy(scoped(source));
    expect({ source, same: (await pictureOutside()).equals(before) }).toEqual({ source, same: true });
  }
});
