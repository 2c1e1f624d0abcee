import { run } from "./cli/program.ts";

// What the program makes is its user's alone: database, key file, temporary files.
process.umask(0o077);

process.exitCode = await run(process.argv.slice(2));
