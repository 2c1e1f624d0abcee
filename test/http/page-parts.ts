/** The text of HTML, with all its spaces. */
export function codeOf(html: string): string {
  const text = html.replaceAll(/<[^>]*>/g, "");
  return text.replaceAll("&lt;", "<").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}

/** The text of HTML, with single spaces. */
export function textOf(html: string): string {
  return codeOf(html.replaceAll(/<[^>]*>/g, " "))
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ ([.,])/g, "$1")
    .trim();
}

/** The text of the element with an id, with single spaces. */
export function textIn(page: string, id: string): string {
  return textOf(new RegExp(`<(\\w+)[^>]* id="${id}"[^>]*>.*?</\\1>`, "s").exec(page)?.[0] ?? "");
}

/** The address of a link, below the host. */
export function linkOf(page: string, id: string): string {
  return (new RegExp(`<a id="${id}"[^>]* href="([^"]*)"`).exec(page)?.[1] ?? "").replaceAll("&amp;", "&");
}

/** The facts of a list, by their names. */
export function factsIn(page: string, id: string): Record<string, string> {
  const [list = ""] = new RegExp(`<dl[^>]* id="${id}".*?</dl>`, "s").exec(page) ?? [];
  const found = [...list.matchAll(/<dt>(.*?)<\/dt><dd[^>]*>(.*?)<\/dd>/gs)];
  return Object.fromEntries(found.map(([, name = "", value = ""]) => [name, textOf(value)]));
}
