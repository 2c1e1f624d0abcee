import { expect, test } from "bun:test";
import { pageProblems } from "../support/page-problems.ts";

test.each([
  ['<label for="a">A</label><input id="a" value=""><br><textarea id="b"><p></textarea>', []],
  ['<button aria-label="Close"></button><a href="/"><img src="/x" alt=""></a>', []],
  ["<th></th>", ["<th> is empty after <th>"]],
  ["<h1><b> </b></h1>", ["<h1> is empty after <h1>"]],
  ["< role='x'>", []],
  ['< role="x">', ['< role="x"> has no name', "<> is not closed"]],
  ["<p><b>x</p>", ["</p> follows <b>", "<p> is not closed"]],
  ['<p class="">x</p>', ['class is empty in <p class="">']],
  ['<p id="a">x</p><p id="a">y</p>', ["two elements have the id a"]],
  ['<p aria-describedby="a b">x</p><p id="b">y</p>', ["no element has the id a"]],
])("%s", (html, problems) => {
  expect(pageProblems(html)).toEqual(problems);
});
