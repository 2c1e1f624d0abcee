import { join } from "node:path";
import axe from "axe-core";
import type { Frame, Page } from "playwright-core";

/** The folder for pictures of the pages; undefined without SDS_TEST_SCREENSHOTS. */
const SCREENSHOTS = process.env["SDS_TEST_SCREENSHOTS"] && join(import.meta.dir, "../../coverage/screenshots");
interface View {
  width: number;
  colorScheme: "light" | "dark";
}

/** Axe is slow, so each theme and each width occurs in only one view. */
export const VIEWS: readonly View[] = [
  { width: 1280, colorScheme: "light" },
  { width: 390, colorScheme: "dark" },
];
/** The narrowest width that WCAG 2.1 requires, in pixels. */
const NARROWEST = 320;

interface Violation {
  id: string;
  impact: string | null;
  nodes: { html: string }[];
}

/**
 * Checks a page in each view, and with SDS_TEST_SCREENSHOTS takes a picture for people to look at.
 * @returns what axe finds wrong, and whether the page is too wide
 */
export async function look(page: Page, name: string): Promise<string[]> {
  const found: string[] = [];
  for (const view of VIEWS) {
    await show(page, view);
    const { width, colorScheme } = view;
    if (SCREENSHOTS) {
      const path = join(SCREENSHOTS, `${name}-${colorScheme}-${width}.png`);
      await page.screenshot({ path, fullPage: true, animations: "disabled" });
    }
    found.push(...(await checkView(page, name, view)));
  }
  return [...found, ...(await tooWide(page, name))];
}

/** Like `look`, but in one view and without a picture. For a page with the same design as a page that `look` checks. */
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
  const { violations } = await page.evaluate<{ violations: Violation[] }>(
    `axe.run({ resultTypes: ["violations"], preload: false })`,
  );
  return violations.flatMap(({ id, impact, nodes }) => nodes.map(({ html }) => `${impact}, ${id} at ${html}`));
}
