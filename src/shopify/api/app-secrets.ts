import { readFileSync, statSync } from "node:fs";
import { SdsError } from "../../domain/error.ts";

/** Returns the client secrets of the app that are valid now, the newest first. */
export type AppSecrets = () => readonly string[];

/** Reads one secret per line, the newest first. */
function readSecrets(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** The secret with which the app requests tokens. @throws SdsError `failed` if the file has no secret */
export function newestSecret(file: string | null): string {
  const [secret] = file === null ? [] : readSecrets(file);
  if (secret !== undefined) return secret;
  throw new SdsError("failed", "SDS_PLATFORM_SECRET_FILE must name the file with the app's client secret");
}

/**
 * Reads the app's client secrets. For an hour after a rotation, the platform may sign with the old or the new secret.
 * So the file has one secret per line, and is read again when it changes.
 * @param file null if no platform is set up: then there are no secrets
 */
export function createAppSecrets(file: string | null): AppSecrets {
  let readAt: number | undefined;
  let secrets: string[] = [];

  return () => {
    if (file === null) return [];
    try {
      const { mtimeMs } = statSync(file);
      if (mtimeMs === readAt) return secrets;
      const stored = readSecrets(file);
      if (stored.length > 0) secrets = stored;
      readAt = mtimeMs;
    } catch {
      // The file is missing while somebody replaces it. Until then, the known secrets are used.
    }
    return secrets;
  };
}
