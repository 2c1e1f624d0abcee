import { run } from "./cli/program.ts";

// What the program makes is its user's alone: database, key file, temporary files.
process.umask(0o077);

// Whoever reads our output may stop reading: `sds key list | head -1`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

process.exitCode = await run(process.argv.slice(2));
