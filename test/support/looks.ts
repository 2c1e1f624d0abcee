import { join } from "node:path";
import axe from "axe-core";
import type { Frame, Page } from "playwright-core";

const SCREENSHOTS = join(import.meta.dir, "../../coverage/screenshots");
const THEMES = ["light", "dark"] as const;
const WIDTHS = [1280, 390] as const;
const VIEWS = WIDTHS.flatMap((width) => THEMES.map((colorScheme) => ({ width, colorScheme })));
type View = (typeof VIEWS)[number];
/** Axe is slow, so it checks each theme once and each width once. */
const isChecked = ({ width, colorScheme }: View) => (width === 1280) === (colorScheme === "light");
export const CHECKED_VIEWS: readonly View[] = VIEWS.filter(isChecked);
/** The narrowest width that WCAG 2.1 requires, in pixels. */
const NARROWEST = 320;

interface Violation {
  id: string;
  impact: string | null;
  nodes: { html: string }[];
}

/**
 * Takes pictures of a page in both themes and widths, for people to look at.
 * @returns what axe finds wrong, and whether the page is too wide
 */
export async function look(page: Page, name: string, views: readonly View[] = VIEWS): Promise<string[]> {
  const found: string[] = [];
  for (const view of views) {
    await show(page, view);
    const { width, colorScheme } = view;
    const path = join(SCREENSHOTS, `${name}-${colorScheme}-${width}.png`);
    await page.screenshot({ path, fullPage: true, animations: "disabled" });
    if (isChecked(view)) found.push(...(await checkView(page, name, view)));
  }
  return [...found, ...(await tooWide(page, name))];
}

/** Like `look`, for a page that looks like a checked page: without pictures, and in one theme and width. */
export async function glance(page: Page, name: string, view: View): Promise<string[]> {
  await show(page, view);
  return [...(await checkView(page, name, view)), ...(await tooWide(page, name))];
}

async function show(page: Page, { width, colorScheme }: View): Promise<void> {
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
}

async function checkView(page: Page, name: string, { width, colorScheme }: View): Promise<string[]> {
  return (await check(page)).map((violation) => `${name}-${colorScheme}-${width}: ${violation}`);
}

async function tooWide(page: Page, name: string): Promise<string[]> {
  await page.setViewportSize({ width: NARROWEST, height: 900 });
  const isTooWide = await page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");
  const overlapping = await page.evaluate<string[]>(
    `[...document.querySelectorAll("tbody :is(td, th)")]
      .filter((cell) => cell.clientHeight > 0 && cell.scrollHeight > cell.clientHeight + 1)
      .map((cell) => cell.textContent)`,
  );
  return [
    ...(isTooWide ? [`${name} is wider than ${NARROWEST}`] : []),
    ...overlapping.map((text) => `${name} has a cell below the next one: ${text}`),
  ];
}

/** Everything that axe finds, whatever its impact. */
export async function check(page: Page | Frame): Promise<string[]> {
  if (await page.evaluate<boolean>("window.axe === undefined")) await page.evaluate(axe.source);
  const { violations } = await page.evaluate<{ violations: Violation[] }>("axe.run()");
  return violations.flatMap(({ id, impact, nodes }) => nodes.map(({ html }) => `${impact}, ${id} at ${html}`));
}
