/** A heading of a page, with the text below it, up to the next heading of any level. */
export interface Section {
  level: number;
  title: string;
  anchor: string;
  /** Markdown, the heading included. */
  text: string;
}

/** Gives each heading of a page its anchor, as Markdown viewers do: a repeated heading gets a number. */
export function createAnchors(): (title: string) => string {
  const uses = new Map<string, number>();
  return (title) => {
    const anchor = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\s-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-");
    const before = uses.get(anchor) ?? 0;
    uses.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  };
}

/** Returns the sections of a page in Markdown. A # in a code block is not a heading. */
export function outline(text: string): Section[] {
  const anchorOf = createAnchors();
  const sections: Section[] = [];
  let isCode = false;
  for (const line of text.split("\n")) {
    if (line.trimStart().startsWith("```")) isCode = !isCode;
    const [, marks, title] = (!isCode && /^(#{1,6}) (.+)$/.exec(line)) || [];
    if (marks !== undefined && title !== undefined)
      sections.push({ level: marks.length, title: title.replaceAll("`", ""), anchor: anchorOf(title), text: "" });
    const last = sections.at(-1);
    if (last !== undefined) last.text += `${line}\n`;
  }
  return sections;
}

/** Returns the Markdown of a section with its subsections; undefined for an unknown anchor. */
export function sectionText(text: string, anchor: string): string | undefined {
  const sections = outline(text);
  const first = sections.findIndex((each) => each.anchor === anchor);
  const { level } = sections[first] ?? {};
  if (level === undefined) return undefined;
  const rest = sections.slice(first + 1);
  const end = rest.findIndex((each) => each.level <= level);
  return [sections[first], ...rest.slice(0, end === -1 ? undefined : end)].map((each) => each?.text ?? "").join("");
}
