import type { CopyState } from "../../client/copy.ts";
import { syncStdout, writeOut } from "../print.ts";
import type { StateFile } from "./pull-state.ts";
import type { RowFormat } from "./row-format.ts";

export type PulledRow = Record<string, unknown>;

/** Minimum time between two saves. A save syncs two files, so a save after each page would be too slow. */
const SAVE_EVERY_MS = 1_000;

/**
 * Prints rows, syncs stdout if it is a file, then saves the state. After a crash, the next run can print rows again,
 * but never omits a row.
 */
export interface PullOutput {
  /** Prints the header of the format. @throws SdsError `failed` if stdout cannot be written */
  begin(): Promise<void>;
  /** @throws SdsError `failed`; then the states of these and later rows are not saved */
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
      // If this write fails, the pipe's reader may lack the earlier rows too. So their state must not be saved.
      unsaved = undefined;
      await stdout.write(rows.map(format.textOf).join(""));
      unsaved = state;
      if (clock() - savedAt >= SAVE_EVERY_MS) save();
    },
    end: save,
  };
}
