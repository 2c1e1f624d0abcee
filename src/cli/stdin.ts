import { invalid } from "../domain/error.ts";
import { safeMessage } from "./print.ts";

/**
 * Asks the user whether to go on, unless `yes` is set.
 * @param what names the action, without a full stop
 * @throws SdsError `invalid` if the user answers no
 */
export async function confirm(what: string, yes: boolean): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw invalid(`${what}: add --yes to do it`);
  process.stderr.write(`${safeMessage(what)}. Go on? [y/N] `);
  if (!/^y(es)?$/i.test((await readAnswer()).trim())) throw invalid("nothing was done");
}

/** Reads one line from the terminal; an empty text means the end of the input. */
async function readAnswer(): Promise<string> {
  const reader = Bun.stdin.stream().getReader();
  try {
    return Buffer.from((await reader.read()).value ?? []).toString();
  } finally {
    await reader.cancel();
  }
}

/** Reads a secret from stdin, because other users could see it in an argument. @throws SdsError `invalid` */
export async function readSecret(what: string): Promise<string> {
  const secret = (await Bun.stdin.text()).trim();
  if (secret !== "" && secret.length <= 4096 && /^[\x21-\x7e]+$/.test(secret)) return secret;
  throw invalid(`stdin has no ${what}: it must be one line without spaces`);
}
