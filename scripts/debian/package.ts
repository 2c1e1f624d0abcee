import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { $ } from "bun";
import { manualPage } from "../../src/cli/manual.ts";
import { buildProgram } from "../../src/cli/program.ts";
import { unitFor } from "../../src/cli/systemd.ts";

interface DebianPackage {
  /** Path of the executable. */
  program: string;
  /** Debian's name for the architecture. */
  architecture: string;
  version: string;
  /** The result of `programFiles`. */
  texts: Record<string, string>;
  /** The time of all files, in seconds. */
  epoch: string;
  /** Where the package is written. */
  folder: string;
  /** A folder for temporary files. */
  work: string;
}

const MAIN = join(import.meta.dir, "../../src/main.ts");
const DOCUMENTATION = "usr/share/doc/sds";
const UNITS = "lib/systemd/system";

/** Makes the files that come from the program itself: the manual page, completions, and examples for proxies. */
export async function programFiles(now: Date): Promise<Record<string, string>> {
  const sds = async (...args: string[]) => await $`bun ${MAIN} ${args}`.quiet().text();
  const guide = await Bun.file("src/docs/operating.md").text();
  return {
    "sds.1": `${manualPage(await buildProgram(), now)}\n`,
    "sds.bash": await sds("completions", "bash"),
    _sds: await sds("completions", "zsh"),
    "sds.fish": await sds("completions", "fish"),
    Caddyfile: exampleWith(guide, "reverse_proxy 127.0.0.1"),
    "nginx.conf": exampleWith(guide, "proxy_pass http://127.0.0.1"),
  };
}

/** Returns the indented example that contains a text. @throws Error if the guide has no such example */
function exampleWith(guide: string, text: string): string {
  const example = (guide.match(/(?:^ {4}.*\n|^\n(?= {4}))+/gm) ?? []).find((block) => block.includes(text));
  if (example === undefined) throw new Error(`src/docs/operating.md has no example with ${text}`);
  return `${example.replaceAll(/^ {4}/gm, "").trim()}\n`;
}

/** Writes a package for Debian. dpkg-deb compresses it with xz, because lintian refuses zstd. @returns its path */
export async function makePackage(parts: DebianPackage): Promise<string> {
  const { architecture, version, epoch, folder, work } = parts;
  const root = join(work, `root-${architecture}`);
  const [files, modes] = [filesOf(parts), { "usr/bin/sds": 0o755, "usr/lib/sds/backup": 0o755 }];
  const add = (path: string, content: string | Uint8Array, mode = 0o644) => {
    mkdirSync(join(root, dirname(path)), { recursive: true, mode: 0o755 });
    writeFileSync(join(root, path), content);
    chmodSync(join(root, path), mode);
  };
  for (const [path, content] of Object.entries(await files)) add(path, content, modes[path as keyof typeof modes]);
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  copyFileSync(parts.program, join(root, "usr/bin/sds"));
  chmodSync(join(root, "usr/bin/sds"), 0o755);
  const size = Math.ceil(
    (await $`du --summarize --apparent-size --block-size=1024 ${root}`.text()).split("\t").map(Number)[0] ?? 0,
  );
  add("DEBIAN/control", controlOf(version, architecture, size));
  add("DEBIAN/conffiles", "/etc/sds/sds.env\n");
  for (const script of ["postinst", "prerm", "postrm"]) add(`DEBIAN/${script}`, await source(script), 0o755);
  const file = join(folder, `sds_${version}_${architecture}.deb`);
  await $`dpkg-deb --root-owner-group -Zxz -z1 --build ${root} ${file}`
    .env({ ...process.env, SOURCE_DATE_EPOCH: epoch })
    .quiet();
  return file;
}

/** Returns the content of each installed file, except the executable. */
async function filesOf({ version, texts, epoch }: DebianPackage): Promise<Record<string, string | Uint8Array>> {
  const text = (name: string) => texts[name] ?? "";
  const date = new Date(Number(epoch) * 1_000).toUTCString().replace("GMT", "+0000");
  const changes = `sds (${version}) unstable; urgency=medium\n\n  * See \`sds docs changelog\`.\n\n -- ${MAINTAINER}  ${date}\n`;
  return {
    [`${UNITS}/sds.service`]: `${unitFor("/var/lib/sds", ["/usr/bin/sds"], [])}\n`,
    [`${UNITS}/sds-backup.service`]: await source("sds-backup.service"),
    [`${UNITS}/sds-backup.timer`]: await source("sds-backup.timer"),
    "usr/lib/sds/backup": await source("backup"),
    "etc/sds/sds.env": await source("sds.env"),
    "usr/share/man/man1/sds.1.gz": zipped(text("sds.1")),
    "usr/share/bash-completion/completions/sds": text("sds.bash"),
    "usr/share/zsh/vendor-completions/_sds": text("_sds"),
    "usr/share/fish/vendor_completions.d/sds.fish": text("sds.fish"),
    [`${DOCUMENTATION}/examples/Caddyfile`]: text("Caddyfile"),
    [`${DOCUMENTATION}/examples/nginx.conf`]: text("nginx.conf"),
    [`${DOCUMENTATION}/copyright`]: await Bun.file("LICENSE").text(),
    [`${DOCUMENTATION}/changelog.gz`]: zipped(changes),
    "usr/share/lintian/overrides/sds": await source("lintian-overrides"),
  };
}

const MAINTAINER = "The sds authors <sds@packages.debian.org>";

function controlOf(version: string, architecture: string, kilobytes: number): string {
  return `Package: sds
Version: ${version}
Architecture: ${architecture}
Maintainer: ${MAINTAINER}
Installed-Size: ${kilobytes}
Depends: libc6 (>= 2.17), adduser
Section: net
Priority: optional
Description: Subscription Data Service
 A read-only API, signed webhooks and workflow triggers over a local mirror
 of the customers, subscriptions and orders of shops.
`;
}

function source(name: string): Promise<string> {
  return Bun.file(join(import.meta.dir, name)).text();
}

function zipped(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}
