import { expect, test } from "bun:test";
import fc from "fast-check";
import { scopeStylesheet } from "../../../src/domain/style/stylesheet.ts";
import { arbitraryStyle } from "../../support/arbitrary-styles.ts";
import { HOSTILE_STYLES } from "../../support/hostile-styles.ts";

/** Returns the scoped rules, without the containment rule before them. */
function scoped(source: string): string {
  const result = scopeStylesheet(source);
  if (!("css" in result)) throw new Error(`refused: ${JSON.stringify(result.refused)}`);
  const [containment, ...rest] = result.css.split("\n");
  expect(containment).toContain("contain:paint style!important");
  return rest.join("");
}

function rules(source: string): string {
  const css = scoped(source);
  const [, inside] = css.match(/@scope \(\.sds-widget\)\{(.*)\}$/) ?? [];
  if (inside === undefined) throw new Error(`no scope: ${css}`);
  return inside;
}

function refused(source: string): string {
  const result = scopeStylesheet(source);
  if (!("refused" in result)) throw new Error(`not refused: ${result.css}`);
  const { line, column, reason } = result.refused;
  return `${line}:${column} ${reason}`;
}

const W = ".sds-widget:scope";

test.each([
  ["a style without rules is empty", " /* nothing */ ", ""],
  ["an empty style is empty", "", ""],
])("%s", (_, source, css) => {
  expect(scopeStylesheet(source)).toEqual({ css });
});

test.each([
  [".card{color:red}", `${W} .card{color:red;}`],
  ["p > a + b ~ c d{color:red}", `${W} p>a+b~c d{color:red;}`],
  [".a,.b{color:red}", `${W} .a,${W} .b{color:red;}`],
  [".md\\:foo{color:red}", `${W} .md\\:foo{color:red;}`],
  [":root{color:red}", `${W}{color:red;}`],
  ["HTML{color:red}", `${W}{color:red;}`],
  ["body{color:red}", `${W}{color:red;}`],
  [":host{color:red}", `${W}{color:red;}`],
  [":scope{color:red}", `${W}{color:red;}`],
  ["&{color:red}", `${W}{color:red;}`],
  [".sds-widget .a{color:red}", `${W} .a{color:red;}`],
  ["html.dark body[dir] > .a{color:red}", `${W}.dark[dir]>.a{color:red;}`],
  [".dark:root .a{color:red}", `${W}.dark .a{color:red;}`],
  [".dark:root svg:root .a{color:red}", `svg${W}.dark .a{color:red;}`],
  [":root::before{color:red}", `${W}::before{color:red;}`],
  ["*{color:red}", `:is(${W},${W} *){color:red;}`],
  ["* p{color:red}", `:is(${W},${W} *) p{color:red;}`],
  ["* + *{color:red}", `${W} *+*{color:red;}`],
  ["::before{color:red}", `${W} ::before{color:red;}`],
  [":is(html,.a) p{color:red}", `${W} :is(html,.a) p{color:red;}`],
  [".a:has(> b,+ c):not(.x .y){color:red}", `${W} .a:has(>b,+c):not(.x .y){color:red;}`],
  ["li:nth-child(2n + 1 of .a):lang(de){color:red}", `${W} li:nth-child(2n+1 of.a):lang(de){color:red;}`],
])("%p selects in the widget", (source, css) => {
  expect(rules(source)).toBe(css);
});

test.each([
  [".a{color:red;.b{color:tan}}", `${W} .a{color:red;& .b{color:tan;}}`],
  [".a{> b{color:tan}+ c{color:tan}~ d{color:tan}}", `${W} .a{&>b{color:tan;}&+c{color:tan;}&~d{color:tan;}}`],
  [".a{&:hover,&.b,& c,p&{color:tan}}", `${W} .a{&:hover,&.b,& c,p&{color:tan;}}`],
  [".a{p:hover{color:tan}color:red}", `${W} .a{& p:hover{color:tan;}color:red;}`],
  [".a{html.dark &,.x &{color:tan}}", `${W} .a{${W}.dark &,${W} .x &{color:tan;}}`],
  [".a{:is(&,p){color:tan}}", `${W} .a{${W} :is(&,p){color:tan;}}`],
  [".a{@media print{color:tan;b{color:red}}}", `${W} .a{@media print{color:tan;& b{color:red;}}}`],
  [":root{> p{color:tan}}", `${W}{&>p{color:tan;}}`],
])("%p nests", (source, css) => {
  expect(rules(source)).toBe(css);
});

test("conditions are kept", () => {
  const inside = `${W} a{color:red;}`;
  for (const [condition, written] of [
    ["@media screen and (min-width: 10px), print", "@media screen and (min-width:10px),print"],
    ["@media (1px <= width < 9px) and (not (hover))", "@media (1px<=width<9px) and (not (hover))"],
    ["@supports (display: grid) or (not selector(:has(> a)))", "@supports (display:grid) or (not selector(:has(>a)))"],
    ["@container card (inline-size > 30em)", "@container card (inline-size>30em)"],
    ["@container style(--sds-x: 1)", "@container style(--sds-x:1)"],
    ["@MEDIA print", "@media print"],
  ] as const)
    expect(rules(`${condition}{a{color:red}}`)).toBe(`${written}{${inside}}`);
});

test("values are kept", () => {
  for (const value of [
    "color:rgb(1 2 3/50%)!important",
    "top:0!IMPORTANT",
    "margin:-1px calc(1px + -2px)",
    'font:italic 12px/1.5"A B",serif',
    'grid-template-areas:"a b""c d"',
    "grid-template-columns:[start]minmax(1rem,1fr) repeat(2,1fr)[end]",
    "--empty:",
    "--list:1px solid red,2px",
    "background:url(data:image/png;base64,iVBORw0KGgo=)",
    "background:image-set(url(data:image/webp;base64,AAAA)1x,linear-gradient(red,blue) 2x)",
    "transition:all .2s cubic-bezier(.1,.2,.3,1)",
    "width:attr(data-width)",
    "-webkit-user-select:none",
    "content:counter(page)",
    "counter-increment:sds-step 2",
    "display:inline",
    "position:absolute",
  ])
    expect(rules(`p{${value}}`)).toBe(`${W} p{${value};}`);
});

test("names of keyframes get our prefix wherever an animation uses them", () => {
  expect(
    scoped(`
      @keyframes fade { from { opacity: 0 } 50%, to { opacity: 1 } }
      @keyframes sds-own { to { opacity: 1 } }
      @keyframes "two words" {}
      :root { --sds-move: var(--chosen, fade) 1s; --chosen: fade; --area: fade; grid-area: fade }
      p { animation: fade 1s ease-in infinite both, sds-own 2s, elsewhere 1s, var(--sds-move) }
      b { animation-name: fade, none, "two words", var(--x, fade); animation-timing-function: linear }
      i { -webkit-animation: FADE 1s steps(4, end) }
    `),
  ).toBe(
    [
      "@keyframes sds-fade{from{opacity:0;}50%,to{opacity:1;}}",
      "@keyframes sds-own{to{opacity:1;}}",
      "@keyframes sds-two\\ words{}",
      "@scope (.sds-widget){",
      `${W}{--sds-move:var(--chosen,sds-fade) 1s;--chosen:sds-fade;--area:fade;grid-area:fade;}`,
      `${W} p{animation:sds-fade 1s ease-in infinite both,sds-own 2s,sds-elsewhere 1s,var(--sds-move);}`,
      `${W} b{animation-name:sds-fade,none,"sds-two words",var(--x,sds-fade);animation-timing-function:linear;}`,
      `${W} i{-webkit-animation:sds-FADE 1s steps(4,end);}`,
      "}",
    ].join(""),
  );
});

test("keyframes, fonts and registered properties stay in their conditions, outside the scope", () => {
  expect(
    scoped(`@media print { p { color: red } @keyframes a { to { top: 0 } }
      @supports (top: 0) { @font-face { font-family: "sds-x"; src: url(data:font/woff2;base64,AAAA) format("woff2") } } }
      @property --sds-c { syntax: "<color>"; inherits: false; initial-value: red }`),
  ).toBe(
    [
      "@media print{@keyframes sds-a{to{top:0;}}",
      '@supports (top:0){@font-face{font-family:"sds-x";src:url(data:font/woff2;base64,AAAA)format("woff2");}}}',
      '@property --sds-c{syntax:"<color>";inherits:false;initial-value:red;}',
      `@scope (.sds-widget){@media print{${W} p{color:red;}@supports (top:0){}}}`,
    ].join(""),
  );
});

test.each([
  ["p{\n  color: red;\n  background: url(https://x.test/a)\n}", "3:15 In url(), only data:image/"],
  ["p{}\r\n\tp{color:red}}", "2:14 This bracket closes nothing."],
  ["\ufeffp{top:0", "1:2 This bracket is not closed."],
  ["p{top:0}/*", "1:9 The style ends inside a comment"],
  ["p{top:0}\\66", "1:9 The style ends inside a comment"],
  ["p{content:'a", "1:11 This string is not closed on its line."],
  ["p{color}", "1:3 This is not a rule"],
  ["p{color:}", "1:3 This declaration has no value."],
  ["p{colour:red}", "1:3 The property colour is not known."],
  ["p{-moz-binding:none}", "1:3 The property -moz-binding is not allowed: it can load files."],
  ["p{*zoom:1}", "1:3 This is not a rule"],
  ["p{top:0 !ie}", "1:3 Only !important"],
  ["p{top:a:b}", "1:8 Unexpected input."],
  ["p:hoover{top:0}", "1:2 The pseudo-class :hoover is not allowed here."],
  ["a/**/b{top:0}", "1:6 The name of an element must stand first."],
  [".a &{& ~ p{top:0}}\n:root{& ~ p{top:0}}", "2:11 A style can't select elements beside the widget."],
  ["@media{p{top:0}}", "1:1 @media needs a condition."],
  ["@media (foo bar){p{top:0}}", "1:9 Unexpected input."],
  ["@media print,{p{top:0}}", "1:13 Nothing follows this comma."],
  ["@keyframes linear{}", "1:1 Keyframes can't have the name linear"],
  ["@keyframes a{}@keyframes sds-a{}", "1:15 Both sds-a and a would get the name sds-a."],
  ["@keyframes a b{}", "1:1 @keyframes needs one name."],
  ["@keyframes a{p{top:0}}", "1:14 A keyframe is from, to or a percentage."],
  ["@keyframes a{to{b{top:0}}}", "1:17 Only declarations may stand in a keyframe."],
  ["p{@keyframes a{}}", "1:3 @keyframes can't stand in a rule."],
  ["@container (width>1px){@property --sds-a{}}", "1:24 @property can't stand in @container."],
  ["@font-face x{font-family:sds-x}", "1:1 Write the name of a font in font-family"],
  ["@font-face{font-family:sds-x,Shop}", "1:12 The name of a font must begin with sds-, such as sds-brand."],
  ['@font-face{font-family:"sds-x" Shop}', "1:12 The name of a font must begin with sds-, such as sds-brand."],
  ["@font-face{font-family:sds-x;color:red}", "1:30 color is not allowed in @font-face."],
  ["@property x{}", "1:1 The name of a registered property must begin with --sds-."],
  ["p{--x:{}}", "1:3 Braces are not allowed in a value."],
  [`p{top:${"(".repeat(16)}`, "1:22 More than 16 brackets are open at once."],
])("%p is refused at %s", (source, words) => {
  expect(refused(source)).toStartWith(words);
});

test("a style has at most 64 KiB of UTF-8", () => {
  const largest = `p{content:"${"é".repeat((65_536 - 13) / 2)}"}`;
  expect(Buffer.byteLength(largest)).toBeGreaterThan(65_534);
  expect("css" in scopeStylesheet(largest)).toBe(true);
  expect(refused(`${largest}  `)).toBe("1:1 This style is too large: it may have at most 65536 bytes.");
});

test.each([
  ["tokens", "*,".repeat(32_000)],
  ["rules", "a{}".repeat(7_000)],
  ["declarations", `a{${"top:0;".repeat(7_000)}}`],
  ["what it becomes", `${"a,".repeat(14_900)}a{}`],
])("too many %s are refused", (_, source) => {
  expect(refused(source)).toEndWith("This style is too large.");
});

test("every style with a foreign address is refused", () => {
  const styles = HOSTILE_STYLES.filter((source) => source.includes("evil.test"));
  expect(styles.length).toBeGreaterThan(50);
  expect(styles.filter((source) => "css" in scopeStylesheet(source))).toEqual([]);
});

test("position: fixed is refused in every form", () => {
  const styles = HOSTILE_STYLES.filter((source) => /position:[^;}]*(fixed|fi\\78 ed)/i.test(source));
  expect(styles.length).toBeGreaterThan(8);
  expect(styles.filter((source) => "css" in scopeStylesheet(source))).toEqual([]);
});

test("any style is refused at a place in it, or has no address and no end of a style element", () => {
  fc.assert(
    fc.property(arbitraryStyle, (source) => {
      const result = scopeStylesheet(source);
      if ("css" in result) {
        expect(result.css).not.toContain("evil.test");
        expect(result.css).not.toContain("</");
        return;
      }
      const { line, column } = result.refused;
      const lines = source.replace(/^\ufeff/, "").split(/\r\n|[\r\n\f]/);
      expect(line).toBeWithin(1, lines.length + 1);
      expect(column).toBeWithin(1, (lines[line - 1]?.length ?? 0) + 2);
    }),
    { numRuns: 1_000 },
  );
});

test("a scoped style is refused", () => {
  const result = scopeStylesheet("p{top:0}");
  expect(refused("css" in result ? result.css : "")).toBe("1:1 The rule @layer is not allowed.");
});
