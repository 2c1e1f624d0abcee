import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { nameOf, parseServerAddress } from "../../../src/store/postgres/address.ts";
import { temporaryFolder } from "../../support/app.ts";
import { openDatabase } from "../../support/postgres-connections.ts";
import { startPostgres } from "../../support/postgres-process.ts";
import { hasPostgres } from "../../support/postgres-server.ts";

const parse = (text: string) => parseServerAddress(text, null);

describe("a database address", () => {
  test("names server, user, password and database", () => {
    expect(parse("postgres://sds:p%40ss%2F%23%3F%25@127.0.0.1:5433/mirror")).toEqual({
      host: "127.0.0.1",
      port: 5433,
      socketPath: null,
      user: "sds",
      password: "p@ss/#?%",
      database: "mirror",
      tls: null,
    });
    expect(parse(" postgresql://sds@localhost\n")).toMatchObject({ port: 5432, database: "sds", password: "" });
    expect(parse("postgres://sds@[::1]/x")).toMatchObject({ host: "::1", tls: null });
    expect(parse("postgres://us%3Aer@localhost/d%20b")).toMatchObject({ user: "us:er", database: "d b" });
  });

  test("of another machine uses TLS and checks the certificate", () => {
    const tls = { rejectUnauthorized: true } as const;
    expect(parse("postgres://sds@db.example.com/x").tls).toEqual({ ...tls, serverName: "db.example.com" });
    expect(parse("postgres://sds@db.example.com/x?sslmode=verify-full&sslrootcert=system").tls).toEqual({
      ...tls,
      serverName: "db.example.com",
    });
    // The certificate names the IP address as an address, not as a host name.
    expect(parse("postgres://sds@10.0.0.1/x").tls).toEqual(tls);
    expect(parse("postgres://sds@localhost/x?sslmode=verify-full").tls).toEqual({ ...tls, serverName: "localhost" });
    for (const mode of ["disable", "allow", "prefer", "require", "verify-ca", "", "VERIFY-FULL"])
      expect(() => parse(`postgres://sds@db.example.com/x?sslmode=${mode}`)).toThrow(
        'its sslmode must be "verify-full", because the server is on another machine',
      );
    for (const host of ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "127.1.2.3"])
      expect(parse(`postgres://sds@${host}/x`).tls).toBeNull();
    for (const host of ["localhost.example.com", "127.0.0.1.example.com", "[::2]", "0.0.0.0"])
      expect(parse(`postgres://sds@${host}/x`).tls).not.toBeNull();
  });

  test("can name the folder of a socket", () => {
    expect(parse("postgres://sds@/x?host=/run/postgresql")).toMatchObject({
      socketPath: "/run/postgresql/.s.PGSQL.5432",
      tls: null,
    });
    expect(parse("postgres://sds:a%40b@:5433/x?host=/run")).toMatchObject({
      socketPath: "/run/.s.PGSQL.5433",
      password: "a@b",
    });
    expect(parse("postgres://sds@:5433/x")).toMatchObject({ host: "localhost", port: 5433, socketPath: null });
    for (const text of ["postgres://sds@db/x?host=/run/postgresql", "postgres://sds@/x?host=db.example.com"])
      expect(() => parse(text)).toThrow("its parameter host must be the folder of the server's socket");
  });

  test("is named in messages without user and password", () => {
    const names = [
      "postgres://sds:hidden@db.example.com/x",
      "postgres://sds:hidden@[::1]:7/x?sslmode=disable",
      "postgres://sds:hidden@/x?host=/run",
    ].map((text) => nameOf(parse(text)));
    expect(names).toEqual([
      "postgres://db.example.com:5432/x",
      "postgres://[::1]:7/x",
      "the database x at /run/.s.PGSQL.5432",
    ]);
  });

  test("that cannot be used is refused, and no message repeats a part of it", () => {
    const secret = "hidden";
    const refused = [
      secret,
      "",
      `mysql://sds:${secret}@db/x`,
      `postgres://sds:${secret}`,
      `postgres://sds:${secret}@db:70000/x`,
      `postgres://sds:${secret}@db:5432:1/x`,
      `postgres://sds:a#${secret}@db/x`,
      `postgres://sds:a/${secret}@db/x`,
      `postgres://sds:a?${secret}@db/x`,
      `postgres://sds:1/${secret}@db/x`,
      `postgres://sds:1?${secret}@db/x`,
      `postgres://sds:1?${secret}=2@db/x`,
      `postgres://sds:1?sslmode=${secret}@db/x`,
      `postgres://sds:1?host=${secret}@db/x`,
      `postgres://sds:%${secret}@db/x`,
      `postgres://sds:%ff${secret}@db/x`,
      `postgres://:${secret}@db/x`,
      `postgres://sds:${secret}@a,b/x`,
      `postgres://sds:${secret}@a%20b/x`,
      `postgres://sds:${secret}@-db/x`,
      `postgres://sds:${secret}@db/x/y`,
      `postgres://sds:${secret}@db/x%00`,
      `postgres://sds%00:${secret}@db/x`,
      `postgres://sds:${secret}@db/x?sslmode=verify-full&sslmode=disable`,
      `postgres://sds:${secret}@db/x?target_session_attrs=${secret}`,
    ];
    for (const text of refused) {
      const thrown = thrownBy(() => parse(text));
      expect([text, thrown]).toMatchObject([text, { name: "SdsError", code: "invalid" }]);
      const shown = [thrown, (thrown as Error).cause].map((each) => `${each} ${(each as Error)?.stack}`).join();
      expect([text, shown.includes(secret)]).toEqual([text, false]);
      expect(String(thrown)).toContain("the database address cannot be used: ");
    }
  });
});

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (thrown) {
    return thrown;
  }
}

describe("the password file", () => {
  const passwordIn = (lines: string[], address: string) => {
    const file = join(temporaryFolder(), "pgpass");
    writeFileSync(file, lines.join("\n"));
    return parseServerAddress(address, file).password;
  };

  test("has the password in the first matching line", () => {
    const lines = [
      "# db.example.com:5432:x:sds:comment",
      "",
      "db.example.com:5433:x:sds:other port",
      "db.example.com:5432:y:sds:other database",
      "db.example.com:5432:x:root:other user",
      "db.example.com:*:x:sds:a\\:b\\\\c d",
      "*:*:*:sds:any",
    ];
    expect(passwordIn(lines, "postgres://sds@db.example.com/x")).toBe("a:b\\c d");
    expect(passwordIn(lines, "postgres://sds@else.example.com/x")).toBe("any");
    expect(passwordIn(lines, "postgres://nobody@db.example.com/x")).toBe("");
    expect(passwordIn(lines, "postgres://sds:own@db.example.com/x")).toBe("own");
    expect(
      passwordIn(
        [...lines].map((line) => `${line}\r`),
        "postgres://sds@else.example.com/x",
      ),
    ).toBe("any");
    expect(passwordIn(["localhost:*:*:*:p"], "postgres://sds@/x?host=/run")).toBe("p");
    expect(passwordIn(["/run:*:*:*:p"], "postgres://sds@/x?host=/run")).toBe("p");
  });

  test("is refused if it cannot be read", () => {
    expect(() => parseServerAddress("postgres://sds@localhost/x", "/none/pgpass")).toThrow(
      "PGPASSFILE cannot be read: ",
    );
  });
});

describe.skipIf(!hasPostgres())("an address with a socket", () => {
  test("reaches the server", async () => {
    const server = await startPostgres();
    const { port } = new URL(server.url);
    const db = openDatabase(`postgres://postgres@:${port}/postgres?host=${server.folder}`);
    const byNetwork = "SELECT inet_client_addr() IS NOT NULL AS network, current_setting('statement_timeout') AS limit";
    expect(await db.get<object>(byNetwork)).toEqual({ network: false, limit: "4s" });
  });
});
