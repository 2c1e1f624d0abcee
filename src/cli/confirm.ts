import { createInterface } from "node:readline/promises";
import { SdsError } from "../domain/error.ts";
import { printable } from "../log.ts";

/**
 * Lets the user agree to what cannot be taken back: with --yes, or by an answer on a terminal.
 * @param what is done, as a sentence without its full stop
 * @throws SdsError `invalid` if nobody can be asked, or the answer is not yes
 */
export async function confirm(what: string, yes: boolean): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new SdsError("invalid", `${what}: add --yes to do it`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`${printable(what)}. Go on? [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new SdsError("invalid", "nothing was done");
  } finally {
    terminal.close();
  }
}
