import { tell } from "./cli/print.ts";
import { run } from "./cli/program.ts";
import { messageOf } from "./domain/error.ts";

/** How long the exit waits if the reader of stderr has stopped reading. */
const STDERR_TIMEOUT_MS = 5_000;

// Only the user who runs the program may read its files: the database, the key file, temporary files.
process.umask(0o077);

// A reader of stdout may stop early, as in `sds key list | head -1`: that is no failure. Other errors, such as a full
// disk, are failures, because output is lost.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  tell(`sds: cannot write to stdout: ${messageOf(error)}`);
  process.exit(1);
});

// Errors of stderr do not end the program: `serve` goes on without a reader of its log, or with a full disk.
const unreadable = Promise.withResolvers<void>();
process.stderr.on("error", () => unreadable.resolve());

const status = await run(process.argv.slice(2));

// The process exits even with open connections. Otherwise an address that drops packets could delay the exit by two
// minutes. First the process writes all output, even if the reader is slow. If stdout fails, its handler above exits.
await new Promise<void>((resolve) => {
  process.stdout.end((error?: Error | null) => {
    if (!error) resolve();
  });
});
const written = new Promise<void>((resolve) => {
  process.stderr.end(() => resolve());
});
// On a full disk, the callback of stderr is never called, so the wait has a limit.
await Promise.race([written, unreadable.promise, Bun.sleep(STDERR_TIMEOUT_MS)]);
process.exit(status);
