import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { apiShop } from "../support/api-shop.ts";
import { temporaryFolder } from "../support/app.ts";
import { FakeApi, refusal } from "../support/fake-api.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";
import { failure, PROGRAM, type Result } from "../support/program.ts";
import { fieldValue } from "../support/records.ts";
import { SAMPLES, shellWith } from "../support/samples.ts";

const KEY = `cad_pk_${"0123456789ab".repeat(4)}`;
const OTHER_KEY = `cad_pk_${"ba9876543210".repeat(4)}`;

interface Place {
  folder: string;
  state: string;
  args: (url: string, ...more: string[]) => string[];
  /** Runs `sds pull` in the folder. */
  pull: (url: string, ...more: string[]) => Promise<Result>;
  /** Runs a line in a shell, where `$PULL` is `sds pull` with its arguments. */
  shell: (url: string, line: string) => Promise<Result>;
  useKey: (text: string) => void;
}

function place(): Place {
  const folder = join(temporaryFolder(), "work");
  mkdirSync(folder);
  const keyFile = join(folder, "key.txt");
  const useKey = (text: string) => writeFileSync(keyFile, text, { mode: 0o600 });
  useKey(`${KEY}\n`);
  const state = join(folder, "orders.state");
  const args = (url: string, ...more: string[]) => [
    ...[...PROGRAM, "pull", "--url", url, "--resource", "orders", "--state", state],
    ...more,
  ];
  const env = { PATH: process.env["PATH"] ?? "", SDS_KEY_FILE: keyFile, HTTP_PROXY: "http://127.0.0.1:9" };
  async function spawn(command: string[], extra: Record<string, string> = {}): Promise<Result> {
    const child = Bun.spawn(command, { cwd: folder, env: { ...env, ...extra }, stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { status, stdout, stderr };
  }
  return {
    folder,
    state,
    args,
    pull: (url, ...more) => spawn(args(url, ...more)),
    shell: (url, line) => spawn(["bash", "-c", line], { PULL: args(url).join(" ") }),
    useKey,
  };
}

function rowsIn(text: string): unknown[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

test("the first run prints all rows, later runs what changed, and the folder gets only the state", async () => {
  const api = new FakeApi(5);
  const { pull, folder, state } = place();
  const first = await pull(api.url);
  expect({ ...first, stdout: rowsIn(first.stdout) }).toEqual({ status: 0, stdout: api.rows(), stderr: "" });
  expect(await pull(api.url)).toEqual({ status: 0, stdout: "", stderr: "" });
  api.put("ord_2", 22);
  expect((await pull(api.url)).stdout).toBe('{"id":"ord_2","value":22}\n');
  expect(readdirSync(folder).sort()).toEqual(["key.txt", "orders.state"]);
  expect(statSync(state).mode & 0o777).toBe(0o600);
  expect(readFileSync(state, "utf8")).not.toContain(KEY);
});

test("an interrupted first walk continues where it ended", async () => {
  const api = new FakeApi(6);
  api.pageRows = 2;
  const { pull } = place();
  let count = 0;
  api.before = () => {
    count += 1;
    return count === 3 ? refusal(401, "unauthorized", { "X-Request-Id": "r1" }) : undefined;
  };
  const first = await pull(api.url);
  expect(first).toMatchObject({
    status: 1,
    stderr: `sds: ${api.url} answered 401: It is unauthorized. (request r1)\n`,
  });
  const second = await pull(`${api.url}/`);
  expect([...rowsIn(first.stdout), ...rowsIn(second.stdout)]).toEqual(api.rows());
});

test("CSV has its header in each run, except with --no-header", async () => {
  const api = new FakeApi(1);
  const { pull } = place();
  const columns =
    "id,shopifyId,contractId,customerId,source,cycleNumber,status,lines,subtotalCents,discountCents,creditsCents," +
    "totalCents,billedAt\r\n";
  expect((await pull(api.url, "--format", "csv")).stdout).toBe(`${columns}ord_0,,,,,,,,,,,,\r\n`);
  expect((await pull(api.url, "--format", "csv")).stdout).toBe(columns);
  expect((await pull(api.url, "--format", "csv", "--no-header", "--anew")).stdout).toBe("ord_0,,,,,,,,,,,,\r\n");
});

describe("a checkpoint that the server refuses", () => {
  test("ends the run with 1, says what to do, and keeps the state; --anew prints all rows", async () => {
    const api = new FakeApi(3);
    const { pull, state } = place();
    await pull(api.url);
    const before = readFileSync(state, "utf8");
    api.restore("ord_1");
    expect(await pull(api.url)).toEqual({
      status: 1,
      stdout: "",
      stderr:
        `sds: The database of ${api.url} was restored from a backup after the checkpoint in ${state}: ` +
        "run with --anew, which prints all rows again, and throw away what you have\n",
    });
    expect(readFileSync(state, "utf8")).toBe(before);
    expect(rowsIn((await pull(api.url, "--anew")).stdout)).toEqual(api.rows());
    expect((await pull(api.url)).status).toBe(0);
  });

  test("with another shop's key, the run says so and keeps the state; a new key of the same shop works", async () => {
    const api = new FakeApi(1);
    const { pull, state, useKey } = place();
    await pull(api.url);
    const before = readFileSync(state, "utf8");
    useKey(OTHER_KEY);
    api.isOtherShop = true;
    expect(await pull(api.url)).toEqual({
      status: 1,
      stdout: "",
      stderr:
        `sds: ${state} belongs to another shop than the API key: use the key of that shop, or another file ` +
        "for --state\n",
    });
    expect(readFileSync(state, "utf8")).toBe(before);
    api.isOtherShop = false;
    expect(await pull(api.url)).toEqual({ status: 0, stdout: "", stderr: "" });
  });
});

describe("refused with 2, without a request:", () => {
  const refused = async ({ pull }: Place, url: string, ...more: string[]) => {
    const { status, stdout, stderr } = await pull(url, ...more);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    return stderr;
  };

  test("the state of another server or resource, and another file", async () => {
    const [api, other] = [new FakeApi(1), new FakeApi(1)];
    const at = place();
    await at.pull(api.url);
    expect(await refused(at, other.url)).toBe(
      `sds: ${at.state} is the state of ${api.url}, not of ${other.url}: use another file for --state, or change "url" ` +
        "in it if the server has moved\n",
    );
    for (const more of [[], ["--anew"]])
      expect(await refused(at, api.url, "--resource", "customers", ...more)).toBe(
        `sds: ${at.state} is the state of orders, not of customers: use another file for --state\n`,
      );
    for (const text of ["my notes", "null", "{}", '{"version":2}']) {
      writeFileSync(at.state, text);
      for (const more of [[], ["--anew"]])
        expect(await refused(at, api.url, ...more)).toBe(
          `sds: ${at.state} is not a state of sds pull: name another file for --state\n`,
        );
      expect(readFileSync(at.state, "utf8")).toBe(text);
    }
    expect(other.requests).toEqual([]);
  });

  test("a folder or no name as the state", async () => {
    const at = place();
    expect(await refused(at, "https://sds.example.com", "--state", at.folder)).toContain("--state cannot be read");
    expect(await refused(at, "https://sds.example.com", "--state", "")).toContain("--state must name a file");
  });

  test("plain http to another machine, and addresses of another form, whose text is not repeated", async () => {
    const at = place();
    expect(await refused(at, "http://sds.example.com")).toBe(
      "sds: --url is http:, and everybody on the way could read the key: use https:, or --allow-http in a network that " +
        "you trust\n",
    );
    for (const url of [
      "sds.example.com",
      "https://me:pass@sds.example.com",
      "https://x.example/?a=pass",
      "file:///pass",
    ])
      expect(await refused(at, url)).toBe(
        "sds: --url must be an address such as https://sds.example.com, without user, query and fragment\n",
      );
  });

  test("no key file, and a file without a key, whose text is not repeated", async () => {
    const at = place();
    at.useKey("secret");
    expect(await refused(at, "https://sds.example.com")).toMatch(/^sds: SDS_KEY_FILE \S+key\.txt holds no API key: /);
    expect((await at.shell("https://sds.example.com", "unset SDS_KEY_FILE; $PULL")).stderr).toBe(
      "sds: set SDS_KEY_FILE to a file that holds the API key\n",
    );
    expect((await at.shell("https://sds.example.com", "SDS_KEY_FILE=nowhere $PULL")).stderr).toStartWith(
      "sds: SDS_KEY_FILE cannot be read: ",
    );
  });

  test("another resource, another format", async () => {
    const at = place();
    expect(await refused(at, "https://sds.example.com", "--resource", "order")).toBe(
      'sds: --resource is "order": it must be one of subscriptions, customers, orders\n',
    );
    expect(await refused(at, "https://sds.example.com", "--format", "xml")).toBe(
      'sds: --format is "xml": it must be one of ndjson, csv\n',
    );
  });
});

test("a state in a folder that does not exist is 3", async () => {
  const { pull, folder } = place();
  const { status, stderr } = await pull("https://sds.example.com", "--state", join(folder, "none/orders.state"));
  expect({ status, stderr }).toEqual({ status: 3, stderr: `sds: there is no folder ${join(folder, "none")}\n` });
});

test("a server that does not answer is 1, and the key is in no message", async () => {
  const { pull } = place();
  const api = new FakeApi();
  api.before = () => refusal(429, "rate_limited", { "Retry-After": "3600" });
  const limited = await pull(api.url);
  api.before = () => new Response("<html>", { status: 404 });
  const wrong = await pull(api.url);
  expect([limited, wrong]).toEqual([
    failure(1, `${api.url} answered 429: It is rate_limited.`),
    failure(1, `${api.url} answered 404: The answer is HTTP 404 and not from sds. Is the address right?`),
  ]);
});

describe("rows that cannot be written", () => {
  test.each([
    [">/dev/full", "sds: cannot write to stdout: the disk is full: free some space\n"],
    [">&-", "sds: cannot write to stdout: it is closed\n"],
  ])("are printed again by the next run: %s", async (to, message) => {
    const api = new FakeApi(3);
    const { shell, pull, state } = place();
    expect(await shell(api.url, `$PULL ${to}`)).toEqual({ status: 1, stdout: "", stderr: message });
    expect(existsSync(state)).toBe(false);
    expect(rowsIn((await pull(api.url)).stdout)).toEqual(api.rows());
  });

  test("because the reader is gone end the run with 1, and the state stays", async () => {
    const api = new FakeApi(3);
    const { shell, pull, state } = place();
    const { stdout, stderr } = await shell(api.url, "set -o pipefail; $PULL | true; echo $?");
    expect({ stdout, stderr }).toEqual({
      stdout: "1\n",
      stderr: "sds: cannot write to stdout: EPIPE: broken pipe, write\n",
    });
    expect(existsSync(state)).toBe(false);
    expect(rowsIn((await pull(api.url)).stdout)).toEqual(api.rows());
  });
});

test("after killed runs, all runs together have printed every row", async () => {
  const api = new FakeApi(3_000);
  api.pageRows = 50;
  const at = place();
  const file = join(at.folder, "orders.ndjson");
  let pagesAfterSaving = 0;
  const killed = Promise.withResolvers<void>();
  api.before = async () => {
    // Kills the program some pages after it saved its state. It saves once a second, so the state lacks these pages.
    if (existsSync(at.state)) pagesAfterSaving += 1;
    if (pagesAfterSaving > 5) killed.resolve();
    // Slow answers, so that the program does not end before the kill.
    await Bun.sleep(40);
    return undefined;
  };
  const child = Bun.spawn(at.args(api.url), {
    env: { PATH: process.env["PATH"] ?? "", SDS_KEY_FILE: join(at.folder, "key.txt") },
    stdout: Bun.file(file),
    stderr: "ignore",
  });
  await killed.promise;
  child.kill("SIGKILL");
  await child.exited;
  api.before = () => undefined;
  const earlier = rowsIn(`${readFileSync(file, "utf8").split("\n").slice(0, -1).join("\n")}\n`);
  const later = rowsIn((await at.pull(api.url)).stdout);
  expect(later.length).toBeLessThan(3_000);
  const ids = (rows: unknown[]) => rows.map((row) => (row as { id: string }).id);
  expect(new Set([...ids(earlier), ...ids(later)]).size).toBe(3_000);
});

test("a symbolic link to a state stays a link", async () => {
  const api = new FakeApi(1);
  const { pull, folder } = place();
  writeFileSync(join(folder, "other.txt"), "");
  const real = join(folder, "real.state");
  const link = join(folder, "link.state");
  await pull(api.url, "--state", real);
  symlinkSync(real, link);
  api.put("ord_7", 7);
  expect((await pull(api.url, "--state", link)).stdout).toBe('{"id":"ord_7","value":7}\n');
  expect((await pull(api.url, "--state", real)).stdout).toBe("");
});

describe("--sequence", () => {
  const SEQUENCE = ["--sequence"];
  interface NumberedRow {
    id: string;
    value: number;
    _sequence: number;
  }
  const numbered = ({ stdout }: Result) => rowsIn(stdout) as NumberedRow[];

  test("numbers rows upwards over all runs, so that of a row that is there twice the newest is known", async () => {
    const api = new FakeApi(3);
    api.pageRows = 2;
    const { pull, state } = place();
    let pages = 0;
    api.before = () => {
      pages += 1;
      if (pages === 2) api.put("ord_2", 22);
      return undefined;
    };
    const first = numbered(await pull(api.url, ...SEQUENCE));
    expect(first.map(({ id, value }) => [id, value])).toEqual([
      ["ord_2", 2],
      ["ord_1", 1],
      ["ord_0", 0],
      ["ord_2", 22],
    ]);
    api.put("ord_0", 10);
    const second = numbered(await pull(api.url, ...SEQUENCE));
    // A run without `--sequence` keeps the stored numbers.
    api.put("ord_0", 11);
    expect(rowsIn((await pull(api.url)).stdout)).toEqual([{ id: "ord_0", value: 11 }]);
    const anew = numbered(await pull(api.url, ...SEQUENCE, "--anew"));
    rmSync(state);
    const lost = numbered(await pull(api.url, ...SEQUENCE));
    const numbers = [...first, ...second, ...anew, ...lost].map(({ _sequence }) => _sequence);
    expect(numbers).toHaveLength(11);
    expect(numbers.every(Number.isSafeInteger)).toBe(true);
    expect(new Set(numbers).size).toBe(11);
    // After the loss of the state, numbering starts at the current time again. These numbers may be lower than numbers
    // that the lost state had reserved. So they are not compared.
    expect(numbers.slice(0, 8)).toEqual(numbers.slice(0, 8).toSorted((a, b) => a - b));
  });

  test("in CSV is the last column", async () => {
    const api = new FakeApi(1);
    const { pull } = place();
    const [header, row] = (await pull(api.url, ...SEQUENCE, "--format", "csv")).stdout.split("\r\n");
    expect(header).toEndWith(",totalCents,billedAt,_sequence");
    expect(row).toMatch(/^ord_0,,,,,,,,,,,,,\d{16}$/);
  });

  const psql = Bun.which("psql");
  test.skipIf(psql === null || !hasPostgres())(
    "lets the recipe for PostgreSQL load files in any order, and again",
    async () => {
      const api = new FakeApi(4);
      api.pageRows = 2;
      const { pull, folder } = place();
      const database = await emptyDatabase();
      const files: string[] = [];
      /** Runs `sds pull` into a file. @param more stands for an incomplete row, which a killed run leaves at the end */
      const pullInto = async (file: string, more = "") => {
        const { stdout } = await pull(api.url, ...SEQUENCE);
        writeFileSync(join(folder, file), stdout + more);
        files.push(file);
      };
      let pages = 0;
      api.before = () => {
        pages += 1;
        if (pages === 2) api.put("ord_3", 33);
        return undefined;
      };
      await pullInto("orders-1.ndjson", '{"id":"ord_1","val');
      api.put("ord_3", 34);
      await pullInto("orders-2.ndjson");
      api.put("ord_3", 35);
      api.put("ord_9", 9);
      await pullInto("orders-3.ndjson");
      const sql = SAMPLES.find(({ page, code }) => page === "operating.md" && code.includes("pstdin"))?.code ?? "";
      writeFileSync(join(folder, "load-orders.sql"), sql);
      const load =
        shellWith("operating.md", "load-orders.sql")
          .split("\n")
          .find((line) => line.includes("psql")) ?? "";
      for (const file of [...files, ...files, "orders-3.ndjson", "orders-1.ndjson"]) {
        const child = Bun.spawn(["bash", "-c", load], {
          cwd: folder,
          env: { PATH: process.env["PATH"] ?? "", file, DATABASE: database, PGOPTIONS: "" },
          stdout: "ignore",
          stderr: "pipe",
        });
        const [stderr, status] = await Promise.all([child.stderr.text(), child.exited]);
        expect({ file, status, errors: stderr.match(/ERROR.*/g) }).toEqual({ file, status: 0, errors: null });
      }
      await using db = new SQL(database, { max: 1 });
      const rows: { id: string; value: number }[] = await db`
        SELECT id, (row ->> 'value')::int AS value FROM orders ORDER BY id DESC`;
      expect(rows.map(({ id, value }) => ({ id, value }))).toEqual(api.rows());
    },
  );
});

describe("--include customFields", () => {
  const INCLUDE = ["--resource", "subscriptions", "--include", "customFields"];
  const CSV = [...INCLUDE, "--format", "csv"];

  /** A shop with two subscriptions, and the custom fields tier and note. The second subscription has no note. */
  async function shopWithFields() {
    const shop = await apiShop(2);
    const define = (key: string, type: string) =>
      shop.program.json(["field", "add", key, "--label", key, "--type", type]);
    await define("tier", "number");
    await define("note", "text");
    await shop.load([fieldValue(1, "tier", 1), fieldValue(1, "note", "Hi, you"), fieldValue(2, "tier", 2)]);
    const work = place();
    work.useKey(shop.key);
    const { pull, state } = work;
    const run = (...more: string[]) => pull(shop.server.url, ...more);
    return { ...shop, define, run, state, url: shop.server.url };
  }

  /** The columns of custom fields in each line. They follow the column `cancelledAt`. */
  const columns = ({ stdout }: Result) =>
    stdout.split("\r\n").map((line) => line.split(/cancelledAt|Z,,(?=[^,]*,)/).at(-1));

  test("prints rows with their custom fields, first all and then those whose values changed", async () => {
    const { run, load, url, key } = await shopWithFields();
    const answer = await fetch(`${url}/api/v1/subscriptions?include=customFields`, {
      headers: { Authorization: `Bearer ${key}` },
    });
    const { data } = (await answer.json()) as { data: unknown[] };
    expect(data.map((row) => (row as { customFields: unknown }).customFields)).toContainEqual({
      tier: 1,
      note: "Hi, you",
    });
    const first = await run(...INCLUDE);
    expect({ ...first, stdout: rowsIn(first.stdout) }).toEqual({ status: 0, stdout: data, stderr: "" });
    expect(await run(...INCLUDE)).toEqual({ status: 0, stdout: "", stderr: "" });
    await load([fieldValue(2, "note", "Ho")]);
    expect(rowsIn((await run(...INCLUDE)).stdout)).toMatchObject([{ customFields: { tier: 2, note: "Ho" } }]);
  });

  test("in CSV keeps the columns of the first run, and puts fields that came later into the last column", async () => {
    const { program, run, load, define } = await shopWithFields();
    const header = ",customFields.tier,customFields.note,customFields";
    const first = await run(...CSV);
    expect([columns(first)[0], ...columns(first).slice(1).toSorted(), first.stderr]).toEqual([
      header,
      "",
      '1,"Hi, you",',
      "2,,",
      "",
    ]);
    await define("gift", "boolean");
    await load([fieldValue(2, "gift", true), fieldValue(2, "note", "Ho")]);
    const second = await run(...CSV);
    expect([...columns(second), second.status, second.stderr]).toEqual([
      header,
      '2,Ho,"{""gift"":true}"',
      "",
      0,
      "sds: warning: custom fields without a column of their own: gift. Their values are in the column customFields; " +
        "--anew prints all rows again, with a column for each field\n",
    ]);
    await program.json(["field", "archive", "note"]);
    await load([fieldValue(2, "tier", 3)]);
    expect(columns(await run(...CSV, "--no-header"))).toEqual(['3,,"{""gift"":true}"', ""]);
    const anew = await run(...CSV, "--anew");
    expect([columns(anew)[0], ...columns(anew).slice(1).toSorted(), anew.stderr]).toEqual([
      ",customFields.tier,customFields.gift,customFields",
      "",
      "1,,",
      "3,true,",
      "",
    ]);
  });

  test("in CSV finds the columns also if the state is of NDJSON, which keeps them from then on", async () => {
    const { run, load } = await shopWithFields();
    await run(...INCLUDE);
    await load([fieldValue(2, "note", "Ho")]);
    expect(columns(await run(...CSV))).toEqual([",customFields.tier,customFields.note,customFields", "2,Ho,", ""]);
    await load([fieldValue(2, "note", null), fieldValue(1, "note", null)]);
    await run(...INCLUDE);
    expect(columns(await run(...CSV))).toEqual([",customFields.tier,customFields.note,customFields", ""]);
  });

  test("is refused if the state is of pulls without it, and the other way round, but not with --anew", async () => {
    const { run, state } = await shopWithFields();
    const refused = (how: string) =>
      failure(
        2,
        `${state} is the state of a pull ${how} --include customFields: use another file for --state, or run with ` +
          "--anew, which prints all rows again",
      );
    await run("--resource", "subscriptions");
    expect(readFileSync(state, "utf8")).not.toContain("include");
    expect(await run(...INCLUDE)).toEqual(refused("without"));
    expect(rowsIn((await run(...INCLUDE, "--anew")).stdout)).toHaveLength(2);
    expect(await run("--resource", "subscriptions")).toEqual(refused("with"));
    expect(rowsIn((await run("--resource", "subscriptions", "--anew")).stdout)).toHaveLength(2);
  });

  test("is refused with another resource, another value, and a state of another form", async () => {
    const { run, state } = await shopWithFields();
    expect(await run("--include", "customFields")).toEqual(
      failure(2, "--include customFields needs --resource subscriptions"),
    );
    expect(await run("--resource", "subscriptions", "--include", "lines")).toEqual(
      failure(2, '--include is "lines": it must be one of customFields'),
    );
    await run(...CSV);
    const stored = JSON.parse(readFileSync(state, "utf8"));
    for (const wrong of [{ include: "lines" }, { fieldKeys: "note" }, { fieldKeys: [1] }]) {
      writeFileSync(state, JSON.stringify({ ...stored, ...wrong }));
      expect(await run(...CSV)).toEqual(
        failure(2, `${state} is not a state of sds pull: name another file for --state`),
      );
    }
  });
});
