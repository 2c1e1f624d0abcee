import type { CopyState } from "../../client/copy.ts";
import { syncStdout, writeOut } from "../print.ts";
import type { StateFile } from "./pull-state.ts";
import type { RowFormat } from "./row-format.ts";

export type PulledRow = Record<string, unknown>;

/** Saving syncs two files, so it is not done for each page. */
const SAVE_EVERY_MS = 1_000;

/**
 * Prints rows, and saves the state when the rows before it are written: to the disk, if stdout is a file. So a crash
 * makes the next run print rows again, and never leaves any out.
 */
export interface PullOutput {
  /** Prints what comes before all rows. @throws SdsError `failed` if stdout cannot be written */
  begin(): Promise<void>;
  /** @throws SdsError `failed`; then no state of this or later rows is saved */
  write(rows: readonly PulledRow[], state: CopyState): Promise<void>;
  /** Saves the newest state. @throws SdsError `failed` */
  end(): void;
}

interface Stdout {
  write: (text: string) => Promise<void>;
  sync: () => void;
}

/** @param clock milliseconds */
export function createPullOutput(
  format: RowFormat,
  stateFile: Pick<StateFile, "save">,
  stdout: Stdout = { write: writeOut, sync: syncStdout },
  clock: () => number = () => performance.now(),
): PullOutput {
  let unsaved: CopyState | undefined;
  let savedAt = clock();

  function save(): void {
    if (unsaved === undefined) return;
    stdout.sync();
    stateFile.save(unsaved);
    unsaved = undefined;
    savedAt = clock();
  }

  return {
    begin: () => stdout.write(format.header),
    async write(rows, state) {
      // A reader that has gone has perhaps not read the rows before these either, so their state is dropped.
      unsaved = undefined;
      await stdout.write(rows.map(format.textOf).join(""));
      unsaved = state;
      if (clock() - savedAt >= SAVE_EVERY_MS) save();
    },
    end: save,
  };
}
