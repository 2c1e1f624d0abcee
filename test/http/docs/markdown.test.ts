import { describe, expect, test } from "bun:test";
import { isValidElement } from "preact";
import { render } from "preact-render-to-string";
import { highlight } from "../../../src/http/docs/highlighter.tsx";
import { renderMarkdown } from "../../../src/http/docs/markdown.tsx";
import { linkTo, pictureAt, titleOf } from "../../../src/http/docs/site.ts";

describe("Markdown", () => {
  const rendered = (text: string) => render(renderMarkdown(text, { linkTo, pictureAt, titleOf, highlight }) as never);

  test.each([
    ["<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"],
    ["a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)> b</p>"],
    ["[a](javascript:alert(1))", "<p>a</p>"],
    ["[a](JaVaScRiPt:alert(1))", "<p>a</p>"],
    ["[a](data:text/html,x)", "<p>a</p>"],
    ["[a](//other.example/)", "<p>a</p>"],
    ["[a](http://other.example/)", "<p>a</p>"],
    ["[a](nothing.md)", "<p>a</p>"],
    ["[a](../README.md)", "<p>a</p>"],
    ["[a](api.md#errors)", '<p><a href="/docs/api#errors">a</a></p>'],
    ["[api.md](api.md#errors)", '<p><a href="/docs/api#errors">The API</a></p>'],
    ["[a](https://www.rfc-editor.org/rfc/rfc9110)", '<p><a href="https://www.rfc-editor.org/rfc/rfc9110">a</a></p>'],
    ["![a](x.png)", "<p>a</p>"],
    ["![a](pictures/constructor-light.webp)", "<p>a</p>"],
    [
      "![a](pictures/overview-light.webp)",
      '<img class="in-light" src="/docs/pictures/overview-light.webp" alt="a" loading="lazy" width="1280" height="800"/>' +
        '<img class="in-dark" src="/docs/pictures/overview-dark.webp" alt="a" loading="lazy" width="1280" height="800"/>',
    ],
    ["# A & `b`", '<h1 id="a--b">A &amp; <code>b</code></h1>'],
  ])("%j becomes %j", (text, expected) => {
    expect(rendered(text).trim()).toContain(expected);
  });

  test("a table of three columns stays a table for screen readers when CSS turns its rows into blocks", () => {
    const table = rendered("| a | b | |\n|---|---|---|\n| 1 | 2 | |\n");
    expect(table).toBe(
      '<section class="overflow-auto" aria-label="Table: " tabindex="0"><table role="table" class="stacked">' +
        '<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">a</th>' +
        '<th role="columnheader" scope="col">b</th><td role="cell"></td></tr></thead>' +
        '<tbody role="rowgroup"><tr role="row"><td role="cell">1</td><td role="cell" data-column="b">2</td>' +
        '<td role="cell" data-column></td></tr></tbody></table></section>',
    );
    expect(rendered("| a | b |\n|---|---|\n| 1 | 2 |\n")).not.toContain("stacked");
  });

  test("code keeps every character, in every language", () => {
    const code = "<a & \"b\"> 'c' # d\n  e = `f` && \u{1f600} &amp;\n";
    for (const language of ["sh", "ts", "python", "ruby", "php", "go", "json", "unknown", ""]) {
      const text = rendered(`\`\`\`${language}\n${code}\`\`\`\n`).replace(/<figcaption>.*<\/figcaption>/, "");
      const shown = text
        .replaceAll(/<[^>]*>/g, "")
        .replaceAll("&lt;", "<")
        .replaceAll("&gt;", ">")
        .replaceAll("&quot;", '"')
        .replaceAll("&amp;", "&");
      expect([language, `${shown}\n`]).toEqual([language, code]);
    }
  });

  test("the results are preact's elements, because preact does not render other elements", () => {
    const [heading] = [renderMarkdown("# A", { linkTo, pictureAt, titleOf, highlight })].flat(9);
    expect(isValidElement(heading)).toBe(true);
  });
});
