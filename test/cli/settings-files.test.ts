import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addSettings, parseLine } from "../../src/cli/settings-files.ts";
import { SETTING_NAMES } from "../../src/setting-names.ts";
import { temporaryFolder } from "../support/app.ts";

test.each([
  ["SDS_PORT=9000", ["SDS_PORT", "9000"]],
  ["  SDS_PORT=9000  ", ["SDS_PORT", "9000"]],
  ["SDS_PORT=9000 # behind Caddy", ["SDS_PORT", "9000"]],
  ["SDS_HOST=a#b", ["SDS_HOST", "a#b"]],
  ['SDS_DATA="/var/my data"', ["SDS_DATA", "/var/my data"]],
  ["SDS_DATA='/var/\"my\" data' # a comment", ["SDS_DATA", '/var/"my" data']],
  ["SDS_DATA=/var/my data", ["SDS_DATA", "/var/my data"]],
  [
    "SDS_DATABASE_URL=postgres://sds@db/sds?sslmode=require",
    ["SDS_DATABASE_URL", "postgres://sds@db/sds?sslmode=require"],
  ],
  ["SDS_SHOP=", ["SDS_SHOP", ""]],
  ['SDS_SHOP=""', ["SDS_SHOP", ""]],
])("%p is a setting", (line, setting) => {
  expect(parseLine(line)).toEqual(setting as [string, string]);
});

test.each(["", "   ", "# a comment", "  # SDS_PORT=1"])("%p is no setting, and no mistake", (line) => {
  expect(parseLine(line)).toBeNull();
});

test.each([
  "SDS_PORT",
  "SDS_PORT 9000",
  "export SDS_PORT=9000",
  "SDS_PORT = 9000",
  'SDS_PORT="9000',
  'SDS_PORT="90"00',
  "SDS_PORT='90'#00",
  "1SDS=2",
  "=9000",
  "SDS_PORT=90\u000000",
  "SDS_HOST=a\u001b[2Jb",
])("%p is a mistake", (line) => {
  expect(parseLine(line)).toBeUndefined();
});

/** Makes the settings file of a data folder, and the system's settings file. A text that is null makes no file. */
function files(own: string | Uint8Array | null, system: string | null): { data: string; systemFile: string } {
  const data = join(temporaryFolder(), "data");
  mkdirSync(data);
  const systemFile = join(temporaryFolder(), "sds.env");
  if (own !== null) writeFileSync(join(data, "sds.env"), own);
  if (system !== null) writeFileSync(systemFile, system);
  return { data, systemFile };
}

test("the environment wins over the folder's file, and that file over the system's", () => {
  const { data, systemFile } = files(
    "SDS_PORT=2\nSDS_HOST=own\n",
    "SDS_PORT=3\r\nSDS_HOST=system\r\nSDS_SHOP=c.example\r\n",
  );
  const env = { SDS_PORT: "1" };
  expect(addSettings(data, env, systemFile)).toEqual([]);
  expect(env).toEqual({ SDS_PORT: "1", SDS_HOST: "own", SDS_SHOP: "c.example" } as typeof env);
});

test("the system's file may name the data folder, and the folder's own file may not", () => {
  const { data } = files("SDS_PORT=2", null);
  const { systemFile } = files(null, `SDS_DATA=${data}`);
  const env: Record<string, string> = {};
  addSettings(undefined, env, systemFile);
  expect(env).toEqual({ SDS_DATA: data, SDS_PORT: "2" });
  writeFileSync(join(data, "sds.env"), "SDS_DATA=/elsewhere");
  expect(() => addSettings(undefined, {}, systemFile)).toThrow("sets SDS_DATA");
});

test("unknown settings are warned of with the nearest known one", () => {
  const { data, systemFile } = files("SDS_PROT=99\nTZ=UTC", "SDS_LOGG=info");
  const env = { SDS_KEEP_DELIVRED: "7d", HOME: "/root" };
  expect(addSettings(data, env, systemFile)).toEqual([
    "SDS_KEEP_DELIVRED in the environment is no setting of sds: did you mean SDS_KEEP_DELIVERED?",
    `SDS_LOGG in ${systemFile} is no setting of sds: did you mean SDS_LOG?`,
    `SDS_PROT in ${join(data, "sds.env")} is no setting of sds: did you mean SDS_PORT?`,
    `TZ in ${join(data, "sds.env")} is no setting of sds`,
  ]);
});

test.each([
  ["a line that is no setting", "SDS_PORT=1\n\nSDS_HOST\n", "line 3 is no setting"],
  ["other bytes than UTF-8", Uint8Array.of(0x53, 0xff), "cannot be read: it is not UTF-8 text"],
  ["more than 64 KiB", `#${"x".repeat(64 * 1024)}`, "is larger than 64 KiB"],
])("a file with %s is refused, and changes nothing", (_, own, message) => {
  const { data, systemFile } = files(own, "SDS_SHOP=a.example");
  const env = {};
  expect(() => addSettings(data, env, systemFile)).toThrow(message);
  expect(env).toEqual({});
});

test.each([
  ["a device that never ends", (file: string) => symlinkSync("/dev/zero", file)],
  ["a pipe that nobody writes to", (file: string) => Bun.spawnSync(["mkfifo", file])],
])("%s in place of the settings is refused", (_, make) => {
  const { data, systemFile } = files(null, null);
  make(join(data, "sds.env"));
  // The script runs in another process, because reading the pipe would block the timers of the test.
  const script = `
    import { addSettings } from ${JSON.stringify(join(process.cwd(), "src/cli/settings-files.ts"))};
    addSettings(...${JSON.stringify([data, {}, systemFile])});`;
  const child = Bun.spawnSync([process.execPath, "-e", script], { timeout: 10_000, stderr: "pipe" });
  expect(child.stderr.toString()).toContain("is a pipe or a device");
});

test("every setting that the source names is a known one", () => {
  const sources = [...new Bun.Glob("src/**/*.{ts,tsx}").scanSync(".")];
  const named = sources.flatMap((path) => readFileSync(path, "utf8").match(/"SDS_[A-Z_]+"/g) ?? []);
  expect([...new Set(named)].toSorted()).toEqual(SETTING_NAMES.map((name) => `"${name}"`));
});
