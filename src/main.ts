import { tell } from "./cli/print.ts";
import { run } from "./cli/program.ts";
import { messageOf } from "./domain/error.ts";

/** How long the end waits for a reader of messages that does not read. */
const STDERR_TIMEOUT_MS = 5_000;

// Only the user who runs the program may read what it creates: the database, the key file, temporary files.
process.umask(0o077);

// A reader of our output may stop early, as in `sds key list | head -1`. A full disk loses data that was asked for.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  tell(`sds: cannot write to stdout: ${messageOf(error)}`);
  process.exit(1);
});

// Messages that nobody can read end nothing: `serve` goes on when the reader of its log is gone, or its disk is full.
const unreadable = Promise.withResolvers<void>();
process.stderr.on("error", () => unreadable.resolve());

const status = await run(process.argv.slice(2));

// The process ends now, whatever is still open: a connection to an address that drops packets would keep it for two
// minutes. First it writes what a slow reader has not taken. A failure to write data ends it in the handler above.
await new Promise<void>((resolve) => {
  process.stdout.end((error?: Error | null) => {
    if (!error) resolve();
  });
});
const written = new Promise<void>((resolve) => {
  process.stderr.end(() => resolve());
});
// On a full disk the end of stderr is never called.
await Promise.race([written, unreadable.promise, Bun.sleep(STDERR_TIMEOUT_MS)]);
process.exit(status);
