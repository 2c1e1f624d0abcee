import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { Glob } from "bun";
import { version } from "../package.json";
import { buildProgram } from "../src/cli/program.ts";
import { TOPIC_NAMES } from "../src/domain/events/event.ts";
import { EVENT_DATA } from "../src/domain/events/event-schemas.ts";
import { sampleEvent } from "../src/domain/events/sample.ts";
import { TRIGGER_HANDLES, TRIGGERS } from "../src/domain/events/trigger.ts";
import { RECORD_SCHEMAS } from "../src/domain/records/record-schemas.ts";
import { parseRecord } from "../src/domain/records/records.ts";
import { Customer, Order, Subscription } from "../src/domain/resources.ts";
import { scopeStylesheet } from "../src/domain/style/stylesheet.ts";
import { samplesOf } from "./support/samples.ts";

const TOP = join(import.meta.dir, "..");

function read(path: string): Promise<string> {
  return Bun.file(join(TOP, path)).text();
}

/** Every page of documentation, by its path. */
const PAGES = new Map(
  await Promise.all(
    ["README.md", ...new Glob("{src,scripts,test}/**/*.md").scanSync(TOP)]
      .filter((path) => !path.includes("node_modules/"))
      .sort()
      .map(async (path) => [path, await read(path)] as const),
  ),
);
const ALL = [...PAGES.values()].join("\n");

function page(path: string): string {
  const text = PAGES.get(path);
  if (text === undefined) throw new Error(`there is no ${path}`);
  return text;
}

/** Returns a page's text from a heading to the next heading of the same or a higher level. */
function section(path: string, heading: string): string {
  const [marks = ""] = heading.split(" ");
  const [, rest = ""] = page(path).split(`\n${heading}\n`);
  return rest.split(new RegExp(`^#{1,${marks.length}} `, "m"))[0] ?? "";
}

/** Returns the cells of a section's table rows. Removes the heading row and code marks. */
function rows(text: string): string[][] {
  const cells = (line: string) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", ""));
  return text
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map(cells)
    .filter((row, index) => index > 0 && !/^-+$/.test(row[0] ?? ""));
}

/** Removes code marks and links from a text. */
function plain(text = ""): string {
  return text.replaceAll("`", "").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
}

/** Makes a heading's anchor, as Markdown viewers do. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

function anchors(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => slug(heading));
}

/** Removes code blocks from a page. In code, `#` begins no heading, and brackets make no link. */
function prose(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, "");
}

test("every relative link leads to a file that exists, and to a heading in it", () => {
  const broken = [...PAGES].flatMap(([path, text]) =>
    [...prose(text).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
      .filter(([, to = "", anchor]) => {
        const target = to === "" ? path : join(dirname(path), to);
        if (!existsSync(join(TOP, target))) return true;
        return anchor !== undefined && !anchors(prose(PAGES.get(target) ?? "")).includes(anchor);
      })
      .map(([link]) => `${path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

/** The folders in src. A page can name their files without `src/` in front. */
const FOLDERS = readdirSync(join(TOP, "src"), { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);
const FILES = new Set([...new Glob("{src,test,scripts}/**/*").scanSync(TOP)].map((path) => basename(path)));

/**
 * Finds the paths that a page names, relative to the top of the repository. Paths without `src/` must stand in code
 * marks.
 */
function namedPaths(text: string): string[] {
  const whole = [...text.matchAll(/(?<![\w./-])(?:src|test|scripts)\/[\w./*-]*[\w/*]/g)].map(([path]) => path);
  const short = [...text.matchAll(/`([\w-]+)\/[\w./*-]*`/g)]
    .filter(([, folder = ""]) => FOLDERS.includes(folder))
    .map(([path]) => `src/${path.slice(1, -1)}`);
  return [...whole, ...short];
}

test("every path of the repository that a page names exists", () => {
  const exists = (path: string) =>
    path.includes("*") ? !new Glob(path).scanSync(TOP).next().done : existsSync(join(TOP, path));
  const missing = [...PAGES].flatMap(([path, text]) =>
    namedPaths(text)
      .filter((named) => !exists(named))
      .map((named) => `${path}: ${named}`),
  );
  const missingFiles = [...PAGES].flatMap(([path, text]) =>
    [...text.matchAll(/`([\w-]+\.(?:tsx?|sql))`/g)]
      .filter(([, name = ""]) => !FILES.has(name))
      .map(([name]) => `${path}: ${name}`),
  );
  expect([...missing, ...missingFiles]).toEqual([]);
});

test("nothing cites a document that is not in the repository", async () => {
  // The names are put together from parts, because otherwise this file would itself cite the documents.
  const outside = new RegExp(
    [...["contract", "service"].map((name) => `\\b${name}\\.md`), `\\.\\./${"shared"}`].join("|"),
  );
  const top = readdirSync(TOP).filter((name) => !["node_modules", "dist", "data", "coverage", ".git"].includes(name));
  const files = top
    .flatMap((name) =>
      statSync(join(TOP, name)).isDirectory()
        ? [...new Glob(`${name}/**/*`).scanSync({ cwd: TOP, dot: true })]
        : [name],
    )
    .filter((path) => !path.includes("/node_modules/"));
  const citing = await Promise.all(files.map(async (path) => (outside.test(await read(path)) ? [path] : [])));
  expect(citing.flat().sort()).toEqual([]);
});

test("the pages and headings that the code cites exist", async () => {
  const sources = ["src", "test", "scripts"].flatMap((folder) => [
    ...new Glob(`${folder}/**/*.{ts,tsx,sql}`).scanSync(TOP),
  ]);
  const wrong = sources
    .filter((path) => !path.includes("/node_modules/"))
    .map(async (path) => {
      // A citation can continue in the comment's next line.
      const text = (await read(path)).replaceAll(/\n\s*(?:\*|\/\/|--)\s+/g, " ");
      return [...text.matchAll(/\bdocs\/(\w+\.md)(?:, "?([^")]+)"?\))?/g)]
        .filter(([, name = "", heading]) => {
          const cited = PAGES.get(`src/docs/${name}`);
          return cited === undefined || (heading !== undefined && !anchors(prose(cited)).includes(slug(heading)));
        })
        .map(([citation]) => `${path}: ${citation}`);
    });
  expect((await Promise.all(wrong)).flat()).toEqual([]);
});

test("the settings in docs/operating.md are those that the program reads", async () => {
  const names = (text: string) => [...new Set(text.match(/\bSDS_[A-Z_]+/g))].sort();
  const config = names((await read("src/config.ts")) + (await read("src/setting-names.ts")));
  expect(config).not.toBeEmpty();
  expect(names(page("src/docs/operating.md"))).toEqual(config);
});

test("the style to begin with, in docs/storefront.md, is accepted", () => {
  const styles = samplesOf("storefront.md", page("src/docs/storefront.md")).filter(
    ({ language }) => language === "css",
  );
  expect(styles.map(({ code }) => scopeStylesheet(code))).toEqual([{ css: expect.stringContaining(".sds-widget") }]);
});

test("the changelog begins with the version of the program", () => {
  expect(/^## (.*)$/m.exec(page("src/docs/changelog.md"))?.[1]).toBe(version);
});

test("every command is in docs/operating.md", async () => {
  const nouns = (await buildProgram()).commands.filter((noun) => !noun.name().startsWith("__"));
  const commands = nouns.flatMap((noun) =>
    noun.commands.length === 0 ? [noun.name()] : noun.commands.map((verb) => `${noun.name()} ${verb.name()}`),
  );
  expect(commands.length).toBeGreaterThan(30);
  const table = section("src/docs/operating.md", "## Commands");
  expect(commands.filter((command) => !new RegExp(`\`sds ${command}\\b`).test(table))).toEqual([]);
});

/** Only the settings page and commands use these refusals. The API and the intake never answer with them. */
const NOT_ANSWERED = ["invalid", "conflict", "failed"];

test("every error that the API and the intake can answer with is in docs/api.md, with its status", async () => {
  const table = /STATUS: Record<ErrorCode, number> = \{([^}]*)\}/.exec(await read("src/http/respond.ts"))?.[1] ?? "";
  const statuses = [...table.matchAll(/(\w+): (\d+)/g)].map(([, code = "", status = ""]) => [status, code]);
  expect(statuses).not.toBeEmpty();
  const documented = rows(section("src/docs/api.md", "### Errors")).map(([status, code]) => [status, code]);
  expect(documented.toSorted()).toEqual(
    expect.arrayContaining(statuses.filter(([, code = ""]) => !NOT_ANSWERED.includes(code)).toSorted()),
  );
});

describe("docs/api.md", () => {
  const line = Subscription.properties.lines.items;
  test.each([
    ["### Subscription", Subscription.properties],
    ["### Line item", line.properties],
    ["### Customer", Customer.properties],
    ["### Order", Order.properties],
  ])(
    "%s has the fields that are served, in their order, with the meanings that /openapi.json has",
    (heading, fields) => {
      const documented = rows(section("src/docs/api.md", heading)).map(([field, _type, meaning]) => [field, meaning]);
      const described = Object.entries<TSchema>(fields).map(([field, schema]) => [field, schema.description ?? ""]);
      expect(documented.map(([field, meaning]) => [field, plain(meaning)])).toEqual(
        described.map(([field, description]) => [field, plain(description)]),
      );
    },
  );
});

describe("docs/webhooks.md", () => {
  test("has every topic with the keys of its data, in their order", () => {
    const [topics = ""] = section("src/docs/webhooks.md", "## Topics").split("\n| field |");
    const documented = rows(topics).map(([topic, _when, data = ""]) => ({
      topic,
      keys: data.replace(/, and the reward.*/, "").split(", "),
    }));
    const described = TOPIC_NAMES.map((topic) => ({ topic, keys: Object.keys(EVENT_DATA[topic].properties) }));
    expect(documented as unknown).toEqual(described);
    const sent = TOPIC_NAMES.map((topic) => {
      const keys = Object.keys(sampleEvent(topic).data);
      return { topic, keys: topic === "loyalty.reward_earned" ? keys.slice(0, 2) : keys };
    });
    expect(documented as unknown).toEqual(sent);
  });

  test("has every workflow trigger with its fields", () => {
    const documented = rows(section("src/docs/webhooks.md", "## Workflow triggers")).map(
      ([name, handle, _when, fields]) => ({ name, handle, fields }),
    );
    const known = TRIGGER_HANDLES.map((handle) => ({
      name: TRIGGERS[handle].name,
      handle,
      fields: Object.keys(TRIGGERS[handle].fields).join(", "),
    }));
    expect(documented as unknown).toEqual(known);
  });
});

describe("docs/records.md", () => {
  test.each(Object.entries(RECORD_SCHEMAS))(
    "has what /openapi.json says of the fields of %s",
    (type, { properties }) => {
      const documented = new Map(
        rows(section("src/docs/records.md", `### ${type}`)).map(([field, , is]) => [field, plain(is)]),
      );
      const missing = Object.entries<TSchema>(properties).filter(
        ([field, { description }]) => description !== undefined && !documented.get(field)?.includes(plain(description)),
      );
      expect(missing).toEqual([]);
    },
  );

  const shown = [...ALL.matchAll(/^\{"type":.*\}$/gm)].map(([text]) => JSON.parse(text) as Record<string, unknown>);

  test("shows a record of every type, and the records of all pages are accepted", () => {
    expect(new Set(shown.map(({ type }) => type))).toEqual(
      new Set(["customer", "subscription", "order", "reward", "cancel_flow", "custom_field"]),
    );
    expect(shown.map(parseRecord).filter((result) => "refused" in result)).toEqual([]);
  });

  test.each(["customer", "subscription", "order", "reward", "cancel_flow"])(
    "has the fields of %s, and says which are optional",
    (type) => {
      const example = shown.find((record) => record["type"] === type) ?? {};
      const fields = rows(section("src/docs/records.md", `### ${type}`)).filter(([field = ""]) => !field.includes(" "));
      for (const [field = "", kind] of fields) {
        const { [field]: _, ...without } = example;
        expect({ field, result: parseRecord(kind === "optional" ? { ...without, [field]: null } : without) }).toEqual({
          field,
          result: kind === "optional" ? { record: expect.anything() } : { refused: { field, reason: "is missing" } },
        });
      }
    },
  );
});
