import type { Command } from "commander";
import type { CommitResult } from "../domain/commit.ts";
import { SdsError } from "../domain/error.ts";
import { type IncomingRecord, parseRecordText, type Refusal } from "../domain/records.ts";
import { createRecordWriter } from "../mirror/record-writer.ts";
import { chooseShop, example, JSON_OPTION, SHOP_OPTION, withStore } from "./context.ts";
import { type Line, readLines } from "./lines.ts";
import { printJson, printLine } from "./print.ts";
import { Progress, rateText } from "./progress.ts";

interface Options {
  shop?: string;
  json?: boolean;
  events?: boolean;
}

/** Lines that are applied all or not at all (contract.md 3). */
const LINES_PER_COMMIT = 1_000;

export function addImportCommand(program: Command): void {
  program
    .command("import <file>")
    .description("load NDJSON records, one a line; - reads stdin")
    .option("--events", "queue events for what changes, as if it happened now")
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds import subscriptions.ndjson"))
    .action(async (file: string, options: Options, command: Command) => {
      const { stream, size } = await openInput(file);
      const counts = await withStore(command, async (store) => {
        const shop = await chooseShop(store, options.shop);
        const recordWriter = createRecordWriter(store.mirror, Date.now);
        return importLines(stream, new Progress(process.stderr), size, (records) =>
          recordWriter.submit({ shop, records, eventsSince: options.events === true ? 0 : Number.POSITIVE_INFINITY }),
        );
      });
      if (options.json) printJson(counts);
      else printLine(`read ${counts.read}, changed ${counts.changed}, events ${counts.events}`);
    });
}

async function openInput(file: string): Promise<{ stream: ReadableStream<Uint8Array>; size: number | undefined }> {
  if (file === "-") return { stream: Bun.stdin.stream(), size: undefined };
  const handle = Bun.file(file);
  const stat = await handle.stat().catch(() => undefined);
  if (stat === undefined) throw new SdsError("not_found", `there is no file ${file}`);
  if (stat.isDirectory()) throw new SdsError("invalid", `${file} is a folder`);
  return { stream: handle.stream(), size: stat.isFile() ? stat.size : undefined };
}

interface Counts {
  read: number;
  changed: number;
  events: number;
}

async function importLines(
  stream: ReadableStream<Uint8Array>,
  progress: Progress,
  size: number | undefined,
  apply: (records: IncomingRecord[]) => Promise<CommitResult>,
): Promise<Counts> {
  const counts: Counts = { read: 0, changed: 0, events: 0 };
  const began = performance.now();
  let bytes = 0;
  let batch: Line[] = [];

  async function commit(): Promise<void> {
    const lines = batch.filter(({ text }) => text?.trim() !== "");
    const refuse = (line: Line | undefined, { field, reason }: Refusal) => {
      const first = (batch[0]?.number ?? 1) - 1;
      const kept = first === 0 ? "nothing was imported" : `lines 1 to ${first} were imported, the rest was not`;
      return new SdsError("bad_record", `line ${line?.number}: ${field === "" ? "the record" : `field ${field}`} ${reason}; ${kept}`);
    };
    const records = lines.map((line) => {
      if (line.text === undefined) throw refuse(line, { field: "", reason: "is not UTF-8" });
      const parsed = parseRecordText(line.text);
      if ("refused" in parsed) throw refuse(line, parsed.refused);
      return parsed.record;
    });
    const applied = await apply(records);
    if ("refused" in applied) throw refuse(lines[applied.refused.index], applied.refused);
    counts.read += records.length;
    counts.changed += applied.changed;
    counts.events += applied.events;
    batch = [];
    progress.update(size === undefined ? undefined : bytes / size, rateText(counts.read, (performance.now() - began) / 1000));
  }

  try {
    const chunks = readLines(stream, (n) => {
      bytes += n;
    });
    for await (const lines of chunks) {
      for (const line of lines) {
        batch.push(line);
        if (batch.length === LINES_PER_COMMIT) await commit();
      }
    }
    await commit();
  } finally {
    progress.end();
  }
  return counts;
}
