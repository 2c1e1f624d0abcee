/**
 * Builds dist/sds, one executable with everything inside. `bun scripts/build.ts [--target bun-linux-arm64] [--outfile
 * PATH]`
 */
import { parseArgs } from "node:util";
import { $ } from "bun";

const { values } = parseArgs({
  options: { target: { type: "string" }, outfile: { type: "string", default: "dist/sds" } },
});

// Never --minify, --minify-identifiers or --production: the handlers that Elysia generates break. The autoloads are off
// because a bunfig.toml or .env in the folder in which somebody runs the program could otherwise run any code.
await $`bun build --compile --format=esm --bytecode --minify-syntax --minify-whitespace --sourcemap --no-compile-autoload-dotenv --no-compile-autoload-bunfig --define process.env.NODE_ENV='"production"' ${values.target === undefined ? [] : [`--target=${values.target}`]} src/main.ts --outfile ${values.outfile}`.quiet();
