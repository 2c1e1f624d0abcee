import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { $, Glob } from "bun";
import { version } from "../../package.json";

const TOP = resolve(import.meta.dir, "../..");

/**
 * Builds the npm package of src/client: JavaScript modules with their types, and no dependencies.
 * @param folder gets the package in `client/`, and its tarball
 * @returns the path of the tarball
 */
export async function buildClient(folder: string): Promise<string> {
  const target = resolve(folder, "client");
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  await $`bunx tsc --project src/client --outDir ${target}`.cwd(TOP).quiet();
  for (const path of new Glob("*.d.ts").scanSync({ cwd: target, absolute: true })) await rewriteImports(path);
  const description = (await Bun.file(join(TOP, "src/client/package.json")).json()) as Record<string, unknown>;
  await Bun.write(join(target, "package.json"), `${JSON.stringify({ ...description, version }, null, 2)}\n`);
  cpSync(join(TOP, "src/docs/client.md"), join(target, "README.md"));
  cpSync(join(TOP, "LICENSE"), join(target, "LICENSE"));
  await $`bun pm pack --destination ${resolve(folder)} --quiet`.cwd(target).quiet();
  return resolve(folder, `sds-client-${version}.tgz`);
}

/**
 * Replaces `.ts` by `.js` in the imports of a declaration file. tsc keeps `.ts` there, but the package has no `.ts`
 * sources.
 */
async function rewriteImports(path: string): Promise<void> {
  const text = await Bun.file(path).text();
  await Bun.write(path, text.replaceAll(/(from "\.\/[\w-]+)\.ts"/g, '$1.js"'));
}
