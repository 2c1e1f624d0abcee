import {
  type BinaryExpression,
  type CallExpression,
  type Expression,
  type IfStatement,
  isAwaitExpression,
  isBinaryExpression,
  isBlock,
  isBreakStatement,
  isCallExpression,
  isConditionalExpression,
  isContinueStatement,
  isExportDeclaration,
  isExpressionStatement,
  isIfStatement,
  isImportDeclaration,
  isInterfaceDeclaration,
  isJsxAttribute,
  isNumericLiteral,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isReturnStatement,
  isStringLiteral,
  isTemplateExpression,
  isThrowStatement,
  isTypeAliasDeclaration,
  isTypeNode,
  type Node,
  type SourceFile,
  type Statement,
  SyntaxKind,
} from "typescript/unstable/ast";

/** One small change of a source file: the text from `start` to `end` becomes `after`. */
export interface Mutant {
  path: string;
  /** From 1. */
  line: number;
  start: number;
  end: number;
  before: string;
  after: string;
}

/**
 * The replacements of each operator. A comparison has two replacements: the first moves its boundary, the second
 * reverses its direction.
 */
const OPERATORS: Record<string, string[]> = {
  "===": ["!=="],
  "!==": ["==="],
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "&&": ["||"],
  "||": ["&&"],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["*"],
  "+=": ["-="],
  "-=": ["+="],
};
/** Methods and their replacements. */
const METHODS: Record<string, string> = {
  min: "max",
  max: "min",
  some: "every",
  every: "some",
  startsWith: "endsWith",
  endsWith: "startsWith",
};
/** Methods whose call is removed from a chain. */
const LEFT_OUT = new Set(["run", "where", "toSorted", "toReversed", "filter", "slice", "trim", "toLowerCase"]);
/** Calls that only print or log. Tests need not notice a change in them. */
const TELLING = /(?:^|\.)log\.(?:debug|info|warn|error)$|^(?:tell|printLine)$|\.(?:description|addHelpText)$/;
/**
 * Numbers from this value on are sizes or times. Adding one would make no visible difference, so they are multiplied by
 * ten.
 */
const LARGE = 100;

/**
 * Lists every change that is tried in a file. Comments, types, imports, messages (strings with a space) and log calls
 * stay as they are.
 */
export function candidatesIn(source: SourceFile, path: string): Mutant[] {
  const { text } = source;
  const found: Mutant[] = [];

  function add(node: Node, ...afters: string[]): void {
    const start = node.getStart(source);
    const line = text.slice(0, start).split("\n").length;
    for (const after of afters)
      found.push({ path, line, start, end: node.end, before: text.slice(start, node.end), after });
  }

  function visit(node: Node): void {
    if (isSkipped(node)) return;
    if (isBinaryExpression(node)) addBinary(node);
    else if (isCallExpression(node)) addCall(node);
    else if (isIfStatement(node)) addIf(node);
    else if (isConditionalExpression(node)) add(node.condition, `!(${node.condition.getText(source)})`);
    else if (isExpressionStatement(node) && isCall(node.expression)) add(node, ";");
    else if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
      add(node, `(${node.operand.getText(source)})`);
    else if (node.kind === SyntaxKind.TrueKeyword) add(node, "false");
    else if (node.kind === SyntaxKind.FalseKeyword) add(node, "true");
    else if (isNumericLiteral(node)) add(node, ...otherNumbers(node.getText(source)));
    else if (isStringLiteral(node) && node.text !== "" && !node.text.includes(" ") && !isName(node)) add(node, '""');
    node.forEachChild(visit);
  }

  function addBinary({ left, operatorToken, right }: BinaryExpression): void {
    const operator = operatorToken.getText(source);
    if (operator === "??") add(left.parent, `(${left.getText(source)})`, `(${right.getText(source)})`);
    if (operator === "+" && [left, right].some((side) => isStringLiteral(side) || isTemplateExpression(side))) return;
    add(operatorToken, ...(OPERATORS[operator] ?? []));
  }

  function addCall(call: CallExpression): void {
    if (!isPropertyAccessExpression(call.expression)) return;
    const { name, expression: object } = call.expression;
    const other = METHODS[name.text];
    if (other !== undefined) add(name, other);
    if (LEFT_OUT.has(name.text)) add(call, object.getText(source));
  }

  function addIf(node: IfStatement): void {
    add(node.expression, `!(${node.expression.getText(source)})`);
    if (node.elseStatement === undefined && leaves(node.thenStatement)) add(node, ";");
  }

  visit(source);
  return found;
}

function isSkipped(node: Node): boolean {
  if (
    isTypeNode(node) ||
    isImportDeclaration(node) ||
    isExportDeclaration(node) ||
    isInterfaceDeclaration(node) ||
    isTypeAliasDeclaration(node)
  )
    return true;
  if (isJsxAttribute(node)) return node.initializer !== undefined && isStringLiteral(node.initializer);
  const call = isExpressionStatement(node) ? node.expression : node;
  return isCallExpression(call) && TELLING.test(call.expression.getText());
}

function isCall(expression: Expression): boolean {
  return isCallExpression(isAwaitExpression(expression) ? expression.expression : expression);
}

/** Whether a statement is an early exit. */
function leaves(statement: Statement): boolean {
  const last = isBlock(statement) ? statement.statements.at(-1) : statement;
  return (
    last !== undefined &&
    (isReturnStatement(last) || isThrowStatement(last) || isContinueStatement(last) || isBreakStatement(last))
  );
}

function otherNumbers(text: string): string[] {
  const number = Number(text.replaceAll("_", ""));
  if (!Number.isFinite(number)) return [];
  return number < LARGE ? [String(number + 1), `(${number - 1})`] : [String(number * 10)];
}

/** A string that only names a property. */
function isName(node: Node): boolean {
  return isPropertyAssignment(node.parent) && node.parent.name === node;
}
