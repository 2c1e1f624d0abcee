import { statSync } from "node:fs";
import type { Config } from "../config.ts";

/** Warns of secret files that every user of this machine can read or write. Skips files that cannot be reached. */
export function secretFileWarnings(...files: readonly (string | null | undefined)[]): string[] {
  return files
    .filter((file) => file !== null && file !== undefined)
    .filter(isOpenToAll)
    .map((file) => `every user of this machine can read or change ${file}: run chmod 600 ${file}`);
}

function isOpenToAll(file: string): boolean {
  try {
    return (statSync(file).mode & 0o006) !== 0;
  } catch {
    return false;
  }
}

/** Warnings of the files with the secrets of the server. */
export function secretFiles({ masterKeyFile, platformSecretFile, database, smtpUrlFile }: Config): string[] {
  return secretFileWarnings(masterKeyFile, platformSecretFile, database?.file, database?.passwordFile, smtpUrlFile);
}
