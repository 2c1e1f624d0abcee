import { expect, test } from "bun:test";
import { pageProblems } from "../support/page-problems.ts";

test.each([
  '<!DOCTYPE html><html lang="en"><title>A</title></html>',
  '<label for="a">A</label><input id="a" value required/><br/><textarea id="b" title="a > b"><p></textarea>',
  '<button aria-label="Close"></button><p id="a">A</p><button aria-labelledby="a"></button>',
  '<a href="#a"><img id="a" src="/x" alt="A"></a><svg><path d="x"></path></svg>',
])("a correct page has no problems: %s", (html) => {
  expect(pageProblems(html)).toEqual([]);
});

test.each<[string, string[]]>([
  ["<th></th>", ["<th> has no text: <th>"]],
  ['<h2><b title="a > b"> </b></h2>', ['<h2> has no text: <h2><b title="a > b"> </b>']],
  [
    '<a href="/"><img src="/x" alt/></a>',
    ['alt has no value in <img src="/x" alt/>', '<a> has no text: <a href="/"><img src="/x" alt/>'],
  ],
  ["<label><textarea>A</textarea></label>", ["<label> has no text: <label><textarea></textarea>"]],
  ["<button aria-label>A</button>", ["aria-label has no value in <button aria-label>"]],
  ["<a href>A</a>", ["href has no value in <a href>"]],
  ['<p class="">A</p>', ['class has no value in <p class="">']],
  ['< role="x"></>', ['< role="x"> has no name']],
  ["<p><b></p></b>", ["</p> closes b", "</b> closes p"]],
  ["</p>", ["</p> closes nothing"]],
  ["<p>", ["<p> is not closed"]],
  ["<svg><path/></svg>", ["</svg> closes path", "<svg> is not closed"]],
  [`<p><small></small>${"A".repeat(80)}</p>`, ["<small> has no text: <p><small>"]],
  ["<meta name content>", ["name has no value in <meta name content>", "content has no value in <meta name content>"]],
  ["<img src='x'>", ["unreadable tag: <img src='x'>"]],
  ['<p id="a">A</p><p id="a">B</p>', ["two elements have the id a"]],
  ['<p aria-describedby="a b">A</p><p id="b">B</p>', ['no element has the id "a"']],
  ['<a href="#a">A</a><a href="#">B</a>', ['no element has the id "a"', 'no element has the id ""']],
  ['<button data-copy="a">A</button>', ['no element has the id "a"']],
])("a wrong page is reported: %s", (html, problems) => {
  expect(pageProblems(html)).toEqual(problems);
});
