/** @jsxImportSource preact */

/** Renders a text with code between backticks, as Markdown writes it. */
export function InlineCode({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>;
}
