import { tell } from "./cli/print.ts";
import { run } from "./cli/program.ts";
import { messageOf } from "./domain/error.ts";

// Only the user who runs the program may read what it creates: the database, the key file, temporary files.
process.umask(0o077);

// A reader of our output may stop early, as in `sds key list | head -1`. A full disk loses data that was asked for.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  tell(`sds: cannot write to stdout: ${messageOf(error)}`);
  process.exit(1);
});

// Messages that nobody can read end nothing: `serve` goes on when the reader of its log is gone.
process.stderr.on("error", () => undefined);

process.exitCode = await run(process.argv.slice(2));
