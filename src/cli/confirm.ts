import { SdsError } from "../domain/error.ts";
import { printable } from "../lib/log.ts";

/**
 * Lets the user agree to what cannot be taken back: with --yes, or by an answer on a terminal.
 * @param what is done, as a sentence without its full stop
 * @throws SdsError `invalid` if nobody can be asked, or the answer is not yes
 */
export async function confirm(what: string, yes: boolean): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new SdsError("invalid", `${what}: add --yes to do it`);
  process.stderr.write(`${printable(what)}. Go on? [y/N] `);
  if (!/^y(es)?$/i.test((await readAnswer()).trim())) throw new SdsError("invalid", "nothing was done");
}

/** A terminal gives a line at a time, and nothing at the end of the input. */
async function readAnswer(): Promise<string> {
  const reader = Bun.stdin.stream().getReader();
  try {
    return Buffer.from((await reader.read()).value ?? []).toString();
  } finally {
    await reader.cancel();
  }
}
