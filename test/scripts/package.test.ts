import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { makePackage, programFiles } from "../../scripts/debian/package.ts";
import { unitFor } from "../../src/cli/systemd.ts";
import { temporaryFolder } from "../support/app.ts";

const EPOCH = "1767225600";

/** Makes a package with a stand-in for the executable, and unpacks it. */
async function unpacked() {
  const folder = temporaryFolder();
  const [work, root] = [join(folder, "work"), join(folder, "root")];
  mkdirSync(work);
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\n");
  const texts = await programFiles(new Date(Number(EPOCH) * 1_000));
  const file = await makePackage({
    program,
    architecture: "amd64",
    version: "1.2.3",
    texts,
    epoch: EPOCH,
    folder,
    work,
  });
  await $`dpkg-deb --raw-extract ${file} ${root}`;
  const read = (path: string) => Bun.file(join(root, path)).text();
  return { file, root, read, listing: await $`dpkg-deb --contents ${file}`.text() };
}

test.skipIf(Bun.which("dpkg-deb") === null)(
  "the Debian package has the program, its unit, settings, manual and completions",
  async () => {
    const { file, root, read, listing } = await unpacked();
    for (const [mode, path] of [
      ["-rwxr-xr-x", "usr/bin/sds"],
      ["-rw-r--r--", "etc/sds/sds.env"],
      ["-rw-r--r--", "lib/systemd/system/sds-backup.timer"],
      ["-rwxr-xr-x", "usr/lib/sds/backup"],
      ["-rw-r--r--", "usr/share/man/man1/sds.1.gz"],
      ["-rw-r--r--", "usr/share/bash-completion/completions/sds"],
      ["-rw-r--r--", "usr/share/zsh/vendor-completions/_sds"],
      ["-rw-r--r--", "usr/share/fish/vendor_completions.d/sds.fish"],
    ])
      expect(listing).toMatch(new RegExp(`^${mode} root/root +\\d+ 2026-01-01 \\d\\d:00 \\./${path}$`, "m"));
    expect(file).toEndWith("sds_1.2.3_amd64.deb");
    const unit = await read("lib/systemd/system/sds.service");
    expect(unit).toBe(`${unitFor("/var/lib/sds", ["/usr/bin/sds"], [])}\n`);
    // A flag would override the settings. Then the service would work on another folder than the commands of a shell.
    expect(unit).toContain("\nExecStart=/usr/bin/sds serve\n");
    expect(await read("etc/sds/sds.env")).toContain("\nSDS_DATA=/var/lib/sds\n");
    expect(await read("DEBIAN/conffiles")).toBe("/etc/sds/sds.env\n");
    expect(await read("usr/share/doc/sds/examples/Caddyfile")).toContain("reverse_proxy 127.0.0.1:8080");
    expect(await read("usr/share/doc/sds/examples/nginx.conf")).toStartWith("server {\n    listen 443 ssl;");
    for (const script of ["postinst", "prerm", "postrm"]) {
      await $`sh -n ${join(root, "DEBIAN", script)}`;
      // The executable aborts without /proc, which chroots of image builders do not have.
      expect(await read(`DEBIAN/${script}`)).not.toMatch(/^\s*(?:\/usr\/bin\/)?sds\b/m);
    }
  },
);

test.skipIf(Bun.which("dpkg-deb") === null)("two packages of one commit are equal", async () => {
  const files = [await unpacked(), await unpacked()];
  const [one, other] = await Promise.all(files.map(({ file }) => Bun.file(file).bytes()));
  expect(Buffer.compare(one as Uint8Array, other as Uint8Array)).toBe(0);
});
