import { accessSync, constants, createReadStream, fstatSync, type Stats, statSync } from "node:fs";
import type { Command } from "commander";
import { noteInAudit } from "../actions/audit.ts";
import type { CommitResult } from "../domain/decide/commit.ts";
import type { RecordSource } from "../domain/decide/record-source.ts";
import { codeOf, invalid, messageOf, SdsError } from "../domain/error.ts";
import type { IncomingRecord } from "../domain/records/record-schemas.ts";
import { parseRecordText } from "../domain/records/records.ts";
import type { Refusal } from "../domain/records/refusal.ts";
import { counted } from "../lib/text.ts";
import { createRecordWriter } from "../mirror/record-writer.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { operator, withShop } from "./context.ts";
import { type NumberedLine, readLines } from "./line-reader.ts";
import { EVENTS_OPTION } from "./options.ts";
import { printJson, printLine, printSecret, tell } from "./print.ts";
import { createProgressBar, rateText } from "./progress-bar.ts";

interface ImportCounts {
  read: number;
  changed: number;
  events: number;
  /** Number of records whose personal data was left out, because the person was redacted. */
  leftOut: number;
}

/** Maximum number of lines in one commit. An invalid line discards all lines of its commit. */
const LINES_PER_COMMIT = 1_000;
/** A commit ends early at this many characters, to limit its memory and its time. */
const CHARACTERS_PER_COMMIT = 16 * 1024 * 1024;

/** Adds `import` and `intake secret`: records come from a file, or over HTTP. */
export function addCommands(program: SdsCommand): void {
  program
    .command("import <file>")
    .description("import records from an NDJSON file, which has one record on each line; - reads stdin")
    .option(...EVENTS_OPTION)
    .shopAndJsonOptions()
    .examples("sds import subscriptions.ndjson")
    .action(importFile);

  program
    .command("intake")
    .description("show what the billing system needs to post records to /intake")
    .examples("sds intake secret")
    .command("secret")
    .description("print the shop's intake secret, which signs every post to /intake")
    .shopAndJsonOptions()
    .examples("sds intake secret --shop alpha.myshopify.com")
    .action(async ({ json }: JsonFlag, command: Command) => {
      const found = await withShop(command, async (store, shop) => {
        await noteInAudit(store, { shop, actor: operator() }, Date.now(), "intake_secret.shown");
        return store.shops.intakeSecret(shop.domain);
      });
      if (found === undefined) throw new SdsError("not_found", "the shop was removed");
      printSecret(found.secret, json);
    });
}

type ImportFlags = JsonFlag & { events?: boolean };

async function importFile(file: string, { events = false, json }: ImportFlags, command: Command): Promise<void> {
  const input = openInput(file);
  const counts = await withShop(command, async (store, shop) => {
    const recordWriter = createRecordWriter(store.mirror, Date.now);
    const { changeCount = 0 } = (await store.pages.list(shop.id, "customers", 1, null)) ?? {};
    const source: RecordSource = { changeCount, changedAt: input.changedAt };
    return importLines(input, (records) =>
      recordWriter.submit({ shop, records, source, eventsSince: events ? 0 : Number.POSITIVE_INFINITY }),
    );
  });
  const { leftOut, ...done } = counts;
  if (json) printJson({ ...done, ...(leftOut > 0 && { leftOut }) });
  else printLine(`read ${done.read}, changed ${done.changed}, events ${done.events}`);
  if (leftOut > 0)
    tell(
      `Left out the personal data of ${counted(leftOut, "record", "records")}: these people were redacted after the ` +
        "file last changed, or during the import.",
    );
}

interface Input {
  stream: AsyncIterable<Uint8Array>;
  /** Bytes; undefined for a pipe. */
  size: number | undefined;
  /** When the file last changed, epoch milliseconds; null for a pipe or a device. */
  changedAt: number | null;
}

/**
 * Opens a file for reading; - is stdin.
 * @throws SdsError `not_found` for a missing file, `invalid` for a folder, `failed` for a file that cannot be read
 */
export function openInput(file: string): Input {
  if (file === "-") return { stream: Bun.stdin.stream(), size: undefined, changedAt: changeTime(fstatSync(0)) };
  try {
    accessSync(file, constants.R_OK);
    const stats = statSync(file);
    if (stats.isFile()) return { stream: Bun.file(file).stream(), size: stats.size, changedAt: changeTime(stats) };
    // Bun's own stream cannot wait for a device such as /dev/null.
    if (!stats.isDirectory()) return { stream: createReadStream(file), size: undefined, changedAt: null };
  } catch (thrown) {
    throw readFailure(file, thrown);
  }
  throw invalid(`${file} is a folder`);
}

function changeTime(stats: Stats): number | null {
  return stats.isFile() ? stats.mtimeMs : null;
}

/** Returns an error that says why a file cannot be read. */
export function readFailure(file: string, thrown: unknown): SdsError {
  const code = codeOf(thrown);
  if (code === "ENOENT") return new SdsError("not_found", `there is no file ${file}`);
  if (code === "ENOTDIR")
    return new SdsError("not_found", `there is no file ${file}: a part of its path is not a folder`);
  const reason = ["EACCES", "EPERM"].includes(code) ? "this user may not read it" : messageOf(thrown);
  return new SdsError("failed", `cannot read ${file}: ${reason}`, { cause: thrown });
}

async function importLines(
  { stream, size }: Input,
  apply: (records: IncomingRecord[]) => Promise<CommitResult>,
): Promise<ImportCounts> {
  const progress = createProgressBar(process.stderr);
  const counts: ImportCounts = { read: 0, changed: 0, events: 0, leftOut: 0 };
  const startedAt = performance.now();
  let bytes = 0;
  let batch: NumberedLine[] = [];
  let characters = 0;

  async function commit(): Promise<void> {
    const { read, changed, events, leftOut } = await applyBatch(batch, apply);
    counts.read += read;
    counts.changed += changed;
    counts.events += events;
    counts.leftOut += leftOut;
    batch = [];
    characters = 0;
    progress.update(
      size === undefined ? undefined : bytes / size,
      rateText(counts.read, (performance.now() - startedAt) / 1000),
    );
  }

  try {
    const chunks = readLines(stream, (n) => {
      bytes += n;
    });
    for await (const lines of chunks) {
      for (const line of lines) {
        batch.push(line);
        characters += line.text?.length ?? 0;
        if (batch.length === LINES_PER_COMMIT || characters >= CHARACTERS_PER_COMMIT) await commit();
      }
    }
    await commit();
  } finally {
    progress.end();
  }
  return counts;
}

/** Applies all lines in one commit, except empty lines. @throws SdsError `bad_record`, which names the invalid line */
async function applyBatch(
  batch: readonly NumberedLine[],
  apply: (records: IncomingRecord[]) => Promise<CommitResult>,
): Promise<ImportCounts> {
  const before = (batch[0]?.number ?? 1) - 1;
  const kept = before === 0 ? "nothing was imported" : `lines 1 to ${before} were imported, the rest was not`;
  const lines = batch.filter(({ text }) => text?.trim() !== "");
  const refuse = (line: NumberedLine | undefined, { field, reason }: Refusal) => {
    return new SdsError(
      "bad_record",
      `line ${line?.number}: ${field === "" ? "the record" : `field ${field}`} ${reason}; ${kept}`,
    );
  };
  const records = lines.map((line) => {
    if (line.text === undefined) throw refuse(line, { field: "", reason: "is not UTF-8" });
    const parsed = parseRecordText(line.text);
    if ("refused" in parsed) throw refuse(line, parsed.refused);
    return parsed.record;
  });
  const applied = await apply(records).catch((thrown: unknown) => {
    if (thrown instanceof SdsError) throw thrown;
    const again = "When that is solved, import the file again: records that are in the mirror change nothing";
    throw new SdsError("failed", `${messageOf(thrown)}; ${kept}. ${again}`, { cause: thrown });
  });
  if ("refused" in applied) throw refuse(lines[applied.refused.index], applied.refused);
  const { changed, events, leftOut = 0 } = applied;
  return { read: records.length, changed, events, leftOut };
}
