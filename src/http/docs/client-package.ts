/**
 * The npm package of src/client, which `scripts/build` puts into the executable. undefined in a program that runs from
 * its source.
 */
export function clientPackage(): Blob | undefined {
  return Bun.embeddedFiles.find((file) => "name" in file && /^sds-client-.*\.tgz$/.test(String(file.name)));
}
