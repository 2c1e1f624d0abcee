import { run } from "./cli/program.ts";

// Only the user who runs the program may read what it creates: the database, the key file, temporary files.
process.umask(0o077);

// A reader of our output may stop early, as in `sds key list | head -1`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

process.exitCode = await run(process.argv.slice(2));
