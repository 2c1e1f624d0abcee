import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { runIn } from "../support/client-project.ts";
import { FakeApi, refusal } from "../support/fake-api.ts";
import { startRawServer } from "../support/raw-http.ts";
import { savedProgram } from "../support/samples.ts";

const KEY = `cad_pk_${"0123456789ab".repeat(4)}`;

function place() {
  const folder = temporaryFolder();
  const program = savedProgram("puller.py");
  const keyFile = join(folder, "key.txt");
  writeFileSync(keyFile, `${KEY}\n`, { mode: 0o600 });
  const database = join(folder, "copy.db");
  return {
    pull: (url: string) =>
      runIn(folder, ["python3", program, "--url", url, "--database", database, "--resource", "orders"], {
        SDS_KEY_FILE: keyFile,
        // This proxy does not exist. The program must not use a proxy for a server on this machine.
        http_proxy: "http://127.0.0.1:9",
      }),
    mode: () => statSync(database).mode & 0o777,
    useKey: (text: string) => writeFileSync(keyFile, text, { mode: 0o600 }),
    rows() {
      const db = new Database(database, { readonly: true });
      try {
        const query = db.query<{ json: string }, []>("SELECT json FROM row ORDER BY id DESC");
        return query.all().map(({ json }) => JSON.parse(json));
      } finally {
        db.close();
      }
    },
  };
}

describe.skipIf(Bun.which("python3") === null)("puller.py", () => {
  test("continues an interrupted walk, and then asks for changes", async () => {
    const api = new FakeApi(6);
    api.pageRows = 2;
    const { pull, rows, mode } = place();
    let count = 0;
    api.before = () => {
      count += 1;
      if (count === 2) api.put("ord_5", 55);
      return count === 3 ? refusal(401, "unauthorized") : undefined;
    };
    expect(await pull(api.url)).toEqual({ status: 1, stdout: "", stderr: "puller: It is unauthorized.\n" });
    expect(await pull(api.url)).toEqual({ status: 0, stdout: "orders: 3 rows saved\n", stderr: "" });
    expect(rows()).toEqual(api.rows());
    expect(mode()).toBe(0o600);
  });

  test("tries again after 429 and 5xx", async () => {
    const api = new FakeApi(3);
    const failures = [
      refusal(429, "rate_limited", { "Retry-After": "0" }),
      refusal(503, "unavailable", { "Retry-After": "Sun, 01 Mar 2026 12:00:00 GMT" }),
    ];
    api.before = () => failures.shift();
    const { pull, rows } = place();
    const { status, stderr } = await pull(api.url);
    expect({ status, told: stderr.split("\n") }).toEqual({
      status: 0,
      told: [
        expect.stringMatching(/^puller: It is rate_limited\. Trying again in \d s\.$/),
        expect.stringMatching(/^puller: It is unavailable\. Trying again in \d s\.$/),
        "",
      ],
    });
    expect(rows()).toEqual(api.rows());
  });

  test("tries again after a lost connection, and after an answer that was cut off", async () => {
    const body = '{"data":[],"page":{"nextCursor":null}}';
    const head = `HTTP/1.1 200 OK\r\nX-Checkpoint: 1~1\r\nContent-Length: ${body.length}\r\n\r\n`;
    const { url } = startRawServer("", `${head}{"data":[`, head + body, head + body);
    const { status, stdout, stderr } = await place().pull(url);
    expect({ status, stdout, told: stderr.trimEnd().split("\n") }).toEqual({
      status: 0,
      stdout: "orders: 0 rows saved\n",
      told: Array(2).fill(expect.stringMatching(/^puller: No whole answer: .*\. Trying again in \d s\.$/)),
    });
  });

  test("reads all rows again after a restore", async () => {
    const api = new FakeApi(3);
    const { pull, rows } = place();
    await pull(api.url);
    api.restore("ord_1");
    expect(await pull(api.url)).toEqual({
      status: 0,
      stdout: "orders: 2 rows saved\n",
      stderr: "orders: the server's database was restored, so all rows are read again\n",
    });
    expect(rows()).toEqual(api.rows());
  });

  test("keeps all rows with the key of another shop, also in the middle of the first walk", async () => {
    const api = new FakeApi(6);
    api.pageRows = 2;
    const { pull, rows } = place();
    let count = 0;
    api.before = () => (++count === 3 ? refusal(401, "unauthorized") : undefined);
    await pull(api.url);
    for (const saved of [4, 6]) {
      api.isOtherShop = true;
      expect(await pull(api.url)).toEqual({ status: 1, stdout: "", stderr: "puller: It is other_shop.\n" });
      expect(rows()).toHaveLength(saved);
      api.isOtherShop = false;
      expect((await pull(api.url)).status).toBe(0);
    }
  });

  test("refuses a file without a key, and does not print its text", async () => {
    const { pull, useKey } = place();
    for (const text of ["", `${KEY}\n${KEY}\n`, KEY.toUpperCase()]) {
      useKey(text);
      const { status, stdout, stderr } = await pull("https://sds.example.com");
      expect({ status, stdout, stderr: stderr.replace(/ \S+key\.txt/, " key.txt") }).toEqual({
        status: 1,
        stdout: "",
        stderr: "puller: key.txt holds no API key: it must be cad_pk_ and 48 hexadecimal digits\n",
      });
    }
  });

  test("says that an answer is not a page of sds", async () => {
    const api = new FakeApi(1);
    const { pull } = place();
    for (const text of ["", "<!doctype html>", '{"data":[', new Uint8Array([0xff])]) {
      api.before = () => new Response(text);
      expect((await pull(api.url)).stderr).toBe(
        "puller: The answer is not JSON, so it is not from sds. Is the address right?\n",
      );
    }
    for (const body of [[], null, {}, { data: [], page: null }]) {
      api.before = () => Response.json(body);
      expect((await pull(api.url)).stderr).toBe("puller: The answer is not a page of sds. Is the address right?\n");
    }
    api.before = () => Response.json({ data: [], page: { nextCursor: null } });
    expect((await pull(api.url)).stderr).toBe(
      "puller: The answer has no X-Checkpoint. The server is older than this program.\n",
    );
  });

  test("follows no redirect, and sends the key over http to this machine only", async () => {
    const [api, other] = [new FakeApi(1), new FakeApi()];
    api.before = () => Response.redirect(`${other.url}/api/v1/orders`, 302);
    const { pull } = place();
    expect(await pull(api.url)).toEqual({
      status: 1,
      stdout: "",
      stderr: "puller: The answer is HTTP 302 and not from sds. Is the address right?\n",
    });
    expect(other.requests).toEqual([]);
    expect((await pull("http://sds.example.com")).stderr).toStartWith("puller: --url must be https");
  });
});
