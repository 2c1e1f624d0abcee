/**
 * Writes the published files into dist/release: Debian packages, an archive with the executable for each system, and
 * SHA256SUMS. `scripts/release --only linux-x64` builds only this system. All files get the time of SOURCE_DATE_EPOCH,
 * by default the time of the last commit.
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $, CryptoHasher, Glob } from "bun";
import { version } from "../package.json";
import { makePackage, programFiles } from "./debian/package.ts";

/** The published systems, with the target of `bun build` and the architecture of a Debian package. */
const SYSTEMS: { name: string; target: string; debian?: string }[] = [
  { name: "linux-x64", target: "bun-linux-x64", debian: "amd64" },
  { name: "linux-arm64", target: "bun-linux-arm64", debian: "arm64" },
  { name: "linux-x64-musl", target: "bun-linux-x64-musl" },
  { name: "darwin-arm64", target: "bun-darwin-arm64" },
];
const BUILD = join(import.meta.dir, "build");
const FOLDER = "dist/release";

const { values } = parseArgs({ options: { only: { type: "string" } } });
const systems = SYSTEMS.filter(({ name }) => values.only === undefined || name === values.only);
if (systems.length === 0) throw new Error(`--only is "${values.only}": choose ${SYSTEMS.map(({ name }) => name)}`);

const epoch = process.env["SOURCE_DATE_EPOCH"] ?? (await $`git log -1 --format=%ct`.text()).trim();
const work = mkdtempSync(join(tmpdir(), "sds-release-"));
try {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const texts = await programFiles(new Date(Number(epoch) * 1_000));
  for (const system of systems) await release(system, texts);
  writeFileSync(join(FOLDER, "SHA256SUMS"), await sums());
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function release({ name, target, debian }: (typeof SYSTEMS)[number], texts: Record<string, string>) {
  const folder = `sds-${version}-${name}`;
  const archived = join(work, folder);
  mkdirSync(archived, { recursive: true });
  const program = join(archived, "sds");
  await $`${BUILD} --target ${target} --outfile ${program}`.quiet();
  for (const [file, text] of Object.entries(texts)) writeFileSync(join(archived, file), text);
  copyFileSync("LICENSE", join(archived, "LICENSE"));
  const archive = join(FOLDER, `${folder}.tar.gz`);
  await $`tar --create --gzip --file ${archive} --directory ${work} --sort=name --owner=0 --group=0 --numeric-owner --mtime=@${epoch} ${folder}`;
  tell(archive);
  if (debian !== undefined)
    tell(await makePackage({ program, architecture: debian, version, texts, epoch, folder: FOLDER, work }));
}

async function sums(): Promise<string> {
  const lines = [...new Glob("sds*").scanSync(FOLDER)].sort().map(async (file) => {
    const hash = new CryptoHasher("sha256").update(await Bun.file(join(FOLDER, file)).arrayBuffer()).digest("hex");
    return `${hash}  ${file}\n`;
  });
  return (await Promise.all(lines)).join("");
}

function tell(file: string): void {
  process.stdout.write(`${file}: ${(Bun.file(file).size / 1_000_000).toFixed(1)} MB\n`);
}
