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

/** Returns warnings about the server's own secret files. */
export function secretFiles(config: Config): string[] {
  return secretFileWarnings(...filesOf(config));
}

/** Returns the server's secret files that every user of this machine can read or write. */
export function openToAll(config: Config): string[] {
  return filesOf(config).filter(isOpenToAll);
}

function filesOf({ masterKeyFile, platformSecretFile, database, smtpUrlFile }: Config): string[] {
  const files = [masterKeyFile, platformSecretFile, database?.file, database?.passwordFile, smtpUrlFile];
  return files.filter((file) => file !== null && file !== undefined);
}
