import { GUIDES, isGuide } from "../../docs/guides.ts";
import { sectionText } from "../../docs/outline.ts";
import { PICTURES } from "../../docs/pictures.ts";
import { openApiDocument } from "../openapi/document.ts";
import type { OpenApiDocument } from "../openapi/parts.ts";
import { referencePage } from "./reference.ts";

/** An entry in the list of pages. */
export interface Entry {
  topic: string;
  name: string;
  summary: string;
  path: string;
  /** Whether the entry is a page; false for a section of another page. */
  isPage: boolean;
  /** Returns the Markdown. The first call for a page of the reference renders it from the OpenAPI document. */
  text: () => string;
}

export interface Group {
  name: string;
  entries: readonly Entry[];
}

/** The pages of the reference, by the tags of the OpenAPI document. */
const REFERENCE: readonly { tag: string; topic: string; summary: string; name?: string }[] = [
  { tag: "Subscriptions", topic: "reference-subscriptions", summary: "their list, and one by its id" },
  { tag: "Customers", topic: "reference-customers", summary: "their list, and one by its id" },
  { tag: "Orders", topic: "reference-orders", summary: "their list, and one by its id" },
  { tag: "Shop", topic: "reference-shop", summary: "the domain, plan and currency of the key's shop" },
  {
    tag: "Webhooks",
    topic: "reference-webhooks",
    summary: "headers, body and data of each topic",
    name: "Webhook topics",
  },
  { tag: "Intake", topic: "reference-intake", summary: "sending records" },
  { tag: "Service", topic: "reference-service", summary: "health, and the OpenAPI document" },
];
/** The reference comes after the group with this name. */
const BEFORE_REFERENCE = "Send data";

const guideGroups: readonly Group[] = GUIDES.map(({ name, entries }) => ({
  name,
  entries: entries.map((entry) => {
    const { topic, name: title, summary } = entry;
    if (isGuide(entry))
      return { topic, name: title, summary, path: topicPathOf(topic), isPage: true, text: () => entry.text };
    const path = `${topicPathOf(entry.guide)}#${entry.anchor}`;
    return { topic, name: title, summary, path, isPage: false, text: () => sectionOf(entry.guide, entry.anchor) };
  }),
}));
/** The document is built once for all pages of the reference, because each build takes some milliseconds. */
let document: OpenApiDocument | undefined;
const reference: Group = {
  name: "Reference",
  entries: REFERENCE.map(({ tag, topic, summary, name = tag }) => {
    let made: string | undefined;
    const text = () => {
      document ??= openApiDocument("/");
      made ??= referencePage(document, tag);
      return made;
    };
    return { topic, name, summary, path: topicPathOf(topic), isPage: true, text };
  }),
};
const place = guideGroups.findIndex(({ name }) => name === BEFORE_REFERENCE) + 1;

export const SITE: readonly Group[] = guideGroups.toSpliced(place, 0, reference);

/** All pages, and all sections that have their own topic. */
export const TOPICS: readonly Entry[] = SITE.flatMap(({ entries }) => entries);

export const PAGES: readonly Entry[] = TOPICS.filter(({ isPage }) => isPage);

function sectionOf(guide: string, anchor: string): string {
  const page = TOPICS.find(({ topic }) => topic === guide);
  return sectionText(page?.text() ?? "", anchor) ?? "";
}

function topicPathOf(topic: string): string {
  return `/docs/${topic}`;
}

/**
 * Returns the address on this site for a link in a page. Pages link to each other by file name, such as
 * `api.md#errors`.
 * @returns undefined unless the target is a page, a heading or an https address. Other links could run a script
 */
export function linkTo(target: string): string | undefined {
  if (/^#[\w-]+$/.test(target) || /^https:\/\/[\w.-]+(\/|$)/.test(target)) return target;
  const { page, anchor } = pageOf(target);
  return page === undefined ? undefined : `${page.path}${anchor}`;
}

/** Returns the addresses of a picture that the guides name as `pictures/NAME-light.webp`. */
export function pictureAt(target: string): { light: string; dark: string } | undefined {
  const [, name] = /^pictures\/(\w+)-light\.webp$/.exec(target) ?? [];
  if (name === undefined || !(`${name}-light.webp` in PICTURES)) return undefined;
  return { light: `/docs/pictures/${name}-light.webp`, dark: `/docs/pictures/${name}-dark.webp` };
}

/** Returns the name of the linked page; undefined for other targets. */
export function titleOf(target: string): string | undefined {
  return pageOf(target).page?.name;
}

function pageOf(target: string): { page: Entry | undefined; anchor: string } {
  const [, topic, anchor = ""] = /^([\w-]+)\.md(#[\w-]+)?$/.exec(target) ?? [];
  return { page: PAGES.find((page) => page.topic === topic), anchor };
}
