import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseServerAddress } from "../../../src/store/postgres/address.ts";
import { openConnections } from "../../../src/store/postgres/database.ts";
import { startError } from "../../../src/store/postgres/start-errors.ts";
import { eventually } from "../../support/eventually.ts";
import { type PostgresProcess, runAsServer, startPostgres } from "../../support/postgres-process.ts";
import { hasPostgres, postgresServer } from "../../support/postgres-server.ts";

const KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
/** Makes an authority, and a server certificate that it signs, for the name localhost only. */
const MAKE_CERTIFICATES = `set -e
openssl req -x509 ${KEY} -keyout authority.key -out authority.pem -days 2 -subj "/CN=test authority"
openssl req ${KEY} -keyout server.key -out server.csr -subj /CN=localhost
echo subjectAltName=DNS:localhost > names
openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -out server.pem -days 2 -extfile names`;

const canRun = hasPostgres() && Bun.which("openssl") !== null;

describe.skipIf(!canRun)("TLS to PostgreSQL", () => {
  let server: PostgresProcess;
  let authority: string;

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), "sds-test-tls-"));
    chmodSync(folder, 0o777);
    runAsServer(["sh", "-c", MAKE_CERTIFICATES], folder);
    authority = join(folder, "authority.pem");
    process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
    server = await startPostgres({
      ssl: "on",
      ssl_cert_file: join(folder, "server.pem"),
      ssl_key_file: join(folder, "server.key"),
      log_connections: "on",
      logging_collector: "on",
      log_directory: "log",
      log_filename: "connections",
    });
  });

  /** Whether a connection with this address is encrypted. @throws the error that a user would see */
  async function isEncrypted(host: string, parameters: Record<string, string>, change: Partial<URL> = {}) {
    const { port, username } = { ...{ port: new URL(server.url).port, username: "postgres" }, ...change };
    const text = `postgres://${username}:hidden@${host}:${port}/postgres?${new URLSearchParams(parameters)}`;
    const address = parseServerAddress(text, null);
    const shared = { connections: 1, deadlineMs: 2_000, waitMs: 0, isPooled: false, sleep: Bun.sleep };
    const db = openConnections({ address, ...shared });
    try {
      const found = await db.get<{ ssl: boolean }>("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
      return found?.ssl;
    } catch (thrown) {
      throw startError(thrown, address);
    } finally {
      await db.close();
    }
  }

  test("is used if the certificate is for the host and from the named authority", async () => {
    expect(await isEncrypted("localhost", { sslmode: "verify-full", sslrootcert: authority })).toBe(true);
    expect(await isEncrypted("localhost", {})).toBe(false);
  });

  test("refuses a certificate for another name or from another authority", async () => {
    // The client must refuse before it signs in. Otherwise the server's log would say that this user does not exist.
    const user = { username: "refused" };
    const ours = { sslmode: "verify-full", sslrootcert: authority };
    await expect(isEncrypted("127.0.0.1", ours, user)).rejects.toMatchObject({
      code: "failed",
      message: expect.stringMatching(/^the certificate of postgres:\/\/127\S+ is for another name: use that name/),
    });
    for (const named of [{}, { sslrootcert: "system" }])
      await expect(isEncrypted("localhost", { sslmode: "verify-full", ...named }, user)).rejects.toMatchObject({
        code: "failed",
        message: expect.stringMatching(/^the certificate of \S+ is not trusted .* in the parameter sslrootcert/),
      });
    await expect(isEncrypted("localhost", ours, { username: "last" })).rejects.toMatchObject({ code: "failed" });
    const log = () => readFileSync(join(server.folder, "data/log/connections"), "utf8");
    await eventually(() => log().includes('"last"'));
    expect(log()).not.toContain("refused");
  });

  test("refuses a server without TLS", async () => {
    const { port } = new URL((await postgresServer()).url);
    await expect(
      isEncrypted("localhost", { sslmode: "verify-full", sslrootcert: authority }, { port }),
    ).rejects.toMatchObject({
      code: "failed",
      message: expect.stringMatching(/ has no TLS: turn it on in the server/),
    });
  });

  test("needs certificates in the named file", async () => {
    const empty = join(server.folder, "empty.pem");
    writeFileSync(empty, "");
    for (const [file, reason] of [
      [empty, "has no certificate in PEM"],
      [join(server.folder, "none.pem"), "cannot be read: "],
    ] as const)
      await expect(isEncrypted("localhost", { sslmode: "verify-full", sslrootcert: file })).rejects.toMatchObject({
        code: "invalid",
        message: expect.stringContaining(`its sslrootcert ${reason}`),
      });
  });
});
