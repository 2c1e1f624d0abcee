import { GUIDES, type Guide, type GuideSection, isGuide } from "../../docs/guides.ts";

/** An entry in the list of pages. */
export interface Entry {
  topic: string;
  name: string;
  summary: string;
  path: string;
  /** Whether it is a page of its own, and not a section of one. */
  isPage: boolean;
}

/** The list of pages, in groups. */
export const SITE: readonly { name: string; entries: readonly Entry[] }[] = GUIDES.map(({ name, entries }) => ({
  name,
  entries: entries.map(entryOf),
}));

function entryOf(entry: Guide | GuideSection): Entry {
  const { topic, name, summary } = entry;
  const path = isGuide(entry) ? pathOf(topic) : `${pathOf(entry.guide)}#${entry.anchor}`;
  return { topic, name, summary, path, isPage: isGuide(entry) };
}

/** The path of a guide's page. */
export function pathOf(topic: string): string {
  return `/docs/${topic}`;
}

/** Every page with a text of its own. */
export const PAGES: readonly Guide[] = GUIDES.flatMap(({ entries }) => entries.filter(isGuide));

/**
 * Where a link in a guide leads on the site. Guides link to each other by file name, such as `api.md#errors`.
 * @returns undefined for a link that is neither to a guide, nor to a heading, nor https; so scripts in links are gone
 */
export function linkTo(target: string): string | undefined {
  if (/^#[\w-]+$/.test(target) || /^https:\/\/[\w.-]+(\/|$)/.test(target)) return target;
  const [, topic, anchor = ""] = /^([\w-]+)\.md(#[\w-]+)?$/.exec(target) ?? [];
  return topic !== undefined && PAGES.some((page) => page.topic === topic) ? `${pathOf(topic)}${anchor}` : undefined;
}
