import { expect, test } from "bun:test";
import { join } from "node:path";
import { Glob } from "bun";
import { parseSync } from "oxc-parser";

const SRC = join(import.meta.dir, "../src");
const MAX_FUNCTION_LINES = 70;

/** Types that two files may both declare, with the reason. */
const SHARED_NAMES: Record<string, string> = {
  Dependencies: "what the factory of the file takes; never exported",
  Customer: "the client's own copy, because it imports nothing",
  LineItem: "the client's own copy, because it imports nothing",
  Order: "the client's own copy, because it imports nothing",
  Subscription: "the client's own copy, because it imports nothing",
};

interface SyntaxNode {
  type: string;
  start: number;
  end: number;
  id?: { name?: string } | null;
  declaration?: SyntaxNode | null;
}

const sources = await Promise.all(
  [...new Glob("**/*.{ts,tsx}").scanSync(SRC)].sort().map(async (path) => {
    const text = await Bun.file(join(SRC, path)).text();
    const { program, errors } = parseSync(path, text);
    expect(errors).toEqual([]);
    return { path, text, body: program.body as unknown as SyntaxNode[] };
  }),
);

/** Yields all nodes of a syntax tree, including the root. */
function* nodesOf(value: unknown): Generator<SyntaxNode> {
  if (Array.isArray(value)) for (const each of value) yield* nodesOf(each);
  else if (typeof value === "object" && value !== null) {
    if ("type" in value && "start" in value) yield value as SyntaxNode;
    for (const child of Object.values(value)) yield* nodesOf(child);
  }
}

function lineCount(text: string): number {
  return text.split("\n").length;
}

test("no function has more than 70 lines", () => {
  const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);
  const long = sources.flatMap(({ path, text, body }) =>
    [...nodesOf(body)]
      .filter(({ type }) => functions.has(type))
      .map(({ start, end }) => ({ line: lineCount(text.slice(0, start)), lines: lineCount(text.slice(start, end)) }))
      .filter(({ lines }) => lines > MAX_FUNCTION_LINES)
      .map(({ line, lines }) => `${path}:${line} has ${lines} lines`),
  );
  expect(long).toEqual([]);
});

test("no two files declare different types of one name", () => {
  const declarations = new Set(["TSInterfaceDeclaration", "TSTypeAliasDeclaration", "ClassDeclaration"]);
  const files = new Map<string, string[]>();
  for (const { path, body } of sources) {
    for (const statement of body) {
      const { type, id } = statement.declaration ?? statement;
      const name = declarations.has(type) ? id?.name : undefined;
      if (name !== undefined) files.set(name, [...(files.get(name) ?? []), path]);
    }
  }
  const shared = [...files].filter(([name, paths]) => paths.length > 1 && SHARED_NAMES[name] === undefined);
  expect(shared).toEqual([]);
  expect(Object.keys(SHARED_NAMES).filter((name) => (files.get(name)?.length ?? 0) < 2)).toEqual([]);
});
