import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeApi, refusal } from "../support/fake-api.ts";
import { failure } from "../support/program.ts";
import { KEY, OTHER_KEY, type Place, place, rowsIn } from "./pulling.ts";

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
