/**
 * Builds dist/sds, one executable with everything inside. `scripts/build [--target bun-linux-arm64] [--outfile PATH]`
 *
 * `--client` builds only the npm package of src/client: dist/client, and its tarball dist/sds-client-VERSION.tgz. The
 * executable contains the tarball too.
 * `--client-types` writes the files in src/client that come from the schemas. Run it after a change of a schema.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { writeGeneratedFiles } from "./client/generated.ts";
import { buildClient } from "./client/package.ts";

const { values } = parseArgs({
  options: {
    target: { type: "string" },
    outfile: { type: "string", default: "dist/sds" },
    client: { type: "boolean", default: false },
    "client-types": { type: "boolean", default: false },
  },
});

if (values["client-types"]) await writeGeneratedFiles();
else if (values.client) process.stdout.write(`${await buildClient("dist")}\n`);
else await buildExecutable(values.outfile);

/**
 * Builds in a temporary folder, because Bun also writes the source maps as files beside the executable. They are not
 * needed: the executable contains the source maps.
 */
async function buildExecutable(outfile: string): Promise<void> {
  const client = await buildClient("dist");
  mkdirSync(dirname(outfile), { recursive: true });
  const folder = mkdtempSync(join(dirname(outfile), ".sds-build-"));
  const built = join(folder, basename(outfile));
  try {
    // Never --minify, --minify-identifiers or --production: the handlers that Elysia generates break. The autoloads are
    // off, because a bunfig.toml or .env in the user's current folder could run any code. With --splitting, a command
    // loads only the files that it imports.
    await $`bun build --compile --splitting --format=esm --bytecode --minify-syntax --minify-whitespace --sourcemap --no-compile-autoload-dotenv --no-compile-autoload-bunfig --define process.env.NODE_ENV='"production"' ${values.target === undefined ? [] : [`--target=${values.target}`]} --loader=.tgz:file --asset-naming=[name].[ext] src/main.ts ${client} --outfile ${built}`.quiet();
    renameSync(built, outfile);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
