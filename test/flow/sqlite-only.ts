/** A flow test, or a whole file of flow tests, that does not run on PostgreSQL. */
interface Exception {
  file: string;
  /** The end of the test's name. Without it, the whole file is excluded. */
  test?: string;
  reason: string;
}

/** The tests that do not run on PostgreSQL. `scripts/test --all` runs all other flow tests on both engines. */
export const SQLITE_ONLY: readonly Exception[] = [
  { file: "backup", reason: "backup and restore are for files; PostgreSQL has its own tools" },
  { file: "backup-script", reason: "backup and restore are for files" },
  { file: "backups-elsewhere", reason: "backup and restore are for files" },
  { file: "copy.long", reason: "it uses both engines anyway" },
  { file: "data-folder", reason: "folders, files, their owners, and the lock on the folder" },
  { file: "descriptors", reason: "limits of the operating system, the same with both engines" },
  { file: "doctor-folder", reason: "files, their owners and modes, and the disk of the data folder" },
  { file: "full-disk", reason: "the disk of the data folder; test/store/postgres/check.test.ts has the server's" },
  { file: "locked", reason: "the write lock of the whole database, which PostgreSQL does not have" },
  { file: "pull", reason: "a client, which uses no database; copies.test.ts runs it against both engines" },
  { file: "pull-sequence", reason: "a client, as pull" },
  { file: "pull-fields", reason: "a client, as pull" },
  { file: "client", reason: "a client, as pull" },
  { file: "samples.long", reason: "programs of the pages, which are clients and receivers" },
  { file: "copy-samples", reason: "programs of the pages; copies.test.ts runs one against both engines" },
  { file: "reference-samples", reason: "programs of the pages" },
  { file: "receivers", reason: "receivers; deliveries.test.ts has what they get with both engines" },
  { file: "client-receivers", reason: "receivers with the client" },
  { file: "one-serve", reason: "the lock on the folder; several nodes may serve a PostgreSQL database" },
  { file: "completions", reason: "shops on PostgreSQL are not completed" },
  { file: "manual", reason: "it uses no database" },
  { file: "service", reason: "it uses no database" },
  { file: "restore", reason: "backup and restore are for files" },
  { file: "restore-index", reason: "a damaged file" },
  { file: "commands", test: "because it is a file", reason: "a file in place of the data folder" },
  { file: "commands", test: "because sds.db is not a database", reason: "a damaged file" },
  {
    file: "odd-arguments",
    test: "a backup shows the name of its file without control characters",
    reason: "backup and restore are for files",
  },
  {
    file: "output",
    test: "control characters of an argument or a file do not reach the terminal",
    reason: "`restore` is refused before it names the file",
  },
  {
    file: "transcripts",
    test: "doctor.txt",
    reason: "the checks of the data folder",
  },
  {
    file: "transcripts",
    test: "files.txt",
    reason: "backup, restore and the data folder",
  },
  {
    file: "removal",
    test: "a removal waits for the lock of another process, and leaves no text in the file",
    reason: "the write lock of the whole database, and the free space in its file",
  },
];

/** Makes the flags with which `bun test` skips these tests. */
export function flagsWithoutSqliteOnly(): string[] {
  const files = SQLITE_ONLY.filter(({ test }) => test === undefined);
  const tests = SQLITE_ONLY.flatMap(({ test }) => test ?? []).map((name) => RegExp.escape(name));
  return [
    ...files.map(({ file }) => `--path-ignore-patterns=test/flow/${file}.test.ts`),
    `--test-name-pattern=^(?!.*(?:${tests.join("|")})$)`,
  ];
}
