import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";

test("readyz is 503 from when a newer program upgrades the database, and the log says so", async () => {
  const program = new Program();
  const server = await program.serve();
  const ready = () => fetch(`${server.url}/readyz`);
  expect((await ready()).status).toBe(200);

  await program.setSchemaVersion(99);

  const refused = await eventually(async () => {
    const answer = await ready();
    return answer.status === 503 && answer;
  });
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.json()).toEqual({
    error: {
      code: "unavailable",
      message: expect.stringMatching(/^The database was upgraded by a newer sds \(schema 99, /),
    },
  });
  await eventually(() => server.output.includes('"message":"the program is not ready"'));
  // The reason says everything, so the log entry has no separate `error`.
  expect(server.output).not.toContain('"error":"The database was upgraded');
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
});
