import fc from "fast-check";
import { HOSTILE_STYLES } from "./hostile-styles.ts";

const spaces = fc.constantFrom("", " ", "\n", "\t", "/**/", " /* } */ ", "\r\n", "\f");

const simple = fc.constantFrom(
  ..."p li a b * html body :root :host :scope & h1 .sds-widget .card .x .a .item #frame #widget [class] [title]".split(
    " ",
  ),
  ...":hover :not(.x) :is(html,p) :where(body,*) :has(p) :has(+p) :has(~*) :is(&~p) :not(&) :first-child".split(" "),
  ":nth-child(2n of .x)",
  ":is(.sds-widget ~ *)",
  ":not(.sds-widget, .sds-widget *)",
  "::before",
  "::after",
  ".md\\:foo",
  "h\\74ml",
  ".\\63 ard",
);
const compound = fc.oneof(
  { weight: 9, arbitrary: simple },
  { weight: 1, arbitrary: fc.tuple(simple, simple).map((parts) => parts.join("")) },
);
const combinator = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom(" ", ">", " > ", " ", "+", "~") },
  { weight: 1, arbitrary: fc.constantFrom("||", "/**/", ">>>", " /deep/ ", "/**/ ", ",", " + + ") },
);
const selector = fc
  .tuple(compound, fc.array(fc.tuple(combinator, compound), { maxLength: 2 }))
  .map(([first, rest]) => first + rest.map((pair) => pair.join("")).join(""));
const selectors = fc.array(selector, { minLength: 1, maxLength: 2 }).map((list) => list.join(","));
const nestedSelectors = fc.oneof(
  selectors,
  fc
    .tuple(fc.constantFrom("&", "& ", "& > ", "& ~ ", "& + ", "> ", "~ ", "+ "), selectors)
    .map((pair) => pair.join("")),
);

/** Each declaration shows in an element's computed style, even if another style applies to the element too. */
const declaration = fc.constantFrom(
  "color:red",
  "color:rgb(1 2 3/.5)!important",
  "background-color:tan",
  "background:url(data:image/png;base64,AAAA)",
  "margin-left:-7px",
  "font-size:31px",
  "font-family:Outside,sds-x",
  "display:none",
  "display:block",
  "opacity:.5",
  "z-index:2147483647",
  "border:3px solid",
  "animation:page 9s",
  "animation-name:page,a",
  "transform:scale(3)",
  "--page:red",
  "--x:fixed",
  "--anim:page 1s",
  'content:"x" open-quote counter(page)',
  "counter-increment:sds-a",
  "visibility:hidden",
  "float:left",
  "position:relative",
  "--y:a !important",
  "text-transform:uppercase",
  "letter-spacing:calc(1px + 2px)",
);
const attackingDeclaration = fc.constantFrom(
  "position:fixed",
  "position:var(--x)",
  "position:absolute",
  "display:contents",
  "all:unset",
  "background:url(https://evil.test/a)",
  "background:\\75rl(https://evil.test/a)",
  "background:u\\72 l('https://evil.test/a')",
  'background:image-set("https://evil.test/a" 1x)',
  "--x:url(https://evil.test/a)",
  'list-style:url("https://evil.test/a")',
  "content:url(https://evil.test/a)",
  "counter-increment:page 99",
  "counter-reset:page",
  "view-transition-name:x",
  "anchor-name:--x",
  "behavior:url(#x)",
  "--z:{color:red}",
  "--z:}html{color:red}",
  'content:"}html{color:red}',
  "color:red}html{color:red",
  "color:red}}html{color:red",
  "color:red;}</style>",
  "/*",
  "\\",
);

const condition = fc.constantFrom(
  "@media all",
  "@media (min-width:1px)",
  "@media not print",
  "@media (1px<width) and (not (color:0))",
  "@supports (color:red)",
  "@supports selector(a > b)",
  "@supports not (position:fixed)",
  "@container (width>1px)",
  "@container x (min-width:1px)",
);
const attackingCondition = fc.constantFrom(
  "@layer x",
  "@scope (html)",
  "@starting-style",
  "@container x{}",
  "@media all;",
);
const definition = fc.constantFrom(
  "@keyframes page{from{color:red}to{color:red}}",
  "@keyframes a{50%{margin-left:9px}}",
  "@keyframes sds-a{from,to{color:red}}",
  '@font-face{font-family:sds-x;src:url(data:font/woff2;base64,AAAA) format("woff2")}',
  '@property --sds-x{syntax:"<color>";inherits:true;initial-value:red}',
);

/** @param attacks percentage of the parts that are attacks */
function styleWith(attacks: number): fc.Arbitrary<string> {
  const mostly = (usual: fc.Arbitrary<string>, attack: fc.Arbitrary<string>) =>
    fc.oneof({ weight: 100 - attacks, arbitrary: usual }, { weight: attacks, arbitrary: attack });
  const withBlock = (heading: fc.Arbitrary<string>, block: fc.Arbitrary<string>) =>
    fc.tuple(heading, spaces, block).map(([text, space, inside]) => `${text}${space}{${inside}}`);
  const conditions = mostly(condition, attackingCondition);
  return fc.letrec<{ block: string; item: string; items: string }>((tie) => ({
    block: fc
      .array(
        fc.oneof(
          { depthSize: "small" },
          { weight: 6, arbitrary: mostly(declaration, attackingDeclaration).map((text) => `${text};`) },
          { weight: 2, arbitrary: withBlock(nestedSelectors, tie("block")) },
          { weight: 1, arbitrary: withBlock(conditions, tie("block")) },
        ),
        { minLength: 1, maxLength: 3 },
      )
      .map((parts) => parts.join("")),
    item: fc.oneof(
      { depthSize: "small" },
      { weight: 6, arbitrary: withBlock(selectors, tie("block")) },
      { weight: 1, arbitrary: withBlock(conditions, tie("items")) },
      { weight: 1, arbitrary: mostly(definition, fc.constantFrom(...HOSTILE_STYLES)) },
    ),
    items: fc
      .array(fc.tuple(tie("item"), spaces), { minLength: 1, maxLength: 3 })
      .map((parts) => parts.map((pair) => pair.join("")).join("")),
  })).items;
}

const mutation = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  removed: fc.integer({ min: 0, max: 3 }),
  added: fc.constantFrom(
    ..."{ } ( ) [ ] ; : , \" ' \\ /* */ @ & ~ + > . # * ! < <!-- --> url( | \\7b \\7d \\0 \\a | ^ $ =".split(" "),
    ..." \n\u0000\u000c\u00a0\ufeff\u200b".split(""),
    "",
  ),
});

function damaged(style: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(style, fc.array(mutation, { minLength: 1, maxLength: 2 })).map(([text, mutations]) =>
    mutations.reduce((before, { at, removed, added }) => {
      const index = Math.floor(at * before.length);
      return before.slice(0, index) + added + before.slice(index + removed);
    }, text),
  );
}

/**
 * Styles of a small grammar. Half of them have odd selectors and no attacks, a quarter have attacks, a quarter are
 * damaged.
 */
export const arbitraryStyle: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: styleWith(0) },
  { weight: 2, arbitrary: styleWith(5) },
  { weight: 2, arbitrary: damaged(styleWith(1)) },
);
