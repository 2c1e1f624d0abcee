/**
 * Returns the npm package of src/client, which `scripts/build` embeds in the executable.
 * @returns undefined for a program that runs from source
 */
export function clientPackage(): Blob | undefined {
  return Bun.embeddedFiles.find((file) => "name" in file && /^sds-client-.*\.tgz$/.test(String(file.name)));
}
