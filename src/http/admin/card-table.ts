import { type ComponentChildren, h } from "preact";

interface CardTableProps {
  id: string;
  name: string;
  headings: readonly string[];
  children: ComponentChildren;
}

/**
 * A table whose rows are cards on a narrow screen. Its elements have explicit roles, because a table loses its meaning
 * for screen readers if CSS displays its rows as blocks.
 */
export function CardTable({ id, name, headings, children }: CardTableProps) {
  const heads = headings.map((heading) => h("th", { scope: "col", role: "columnheader" }, heading));
  return h("table", { id, class: "cards", role: "table", "aria-label": name }, [
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    h("tbody", { role: "rowgroup" }, children),
  ]);
}

export function Row({ id, children }: { id?: string; children: ComponentChildren }) {
  return h("tr", { id, role: "row" }, children);
}

/** The cell with the name of its row. */
export function NameCell({ children }: { children: ComponentChildren }) {
  return h("th", { scope: "row", role: "rowheader" }, children);
}

interface CellProps {
  /** Set if the value is at the top right of a card. */
  class?: "corner";
  /** Text before the value in a card. */
  label?: string;
  children: ComponentChildren;
}

export function Cell({ class: name, label, children }: CellProps) {
  return h("td", { class: name, role: "cell", "data-label": label }, children);
}
