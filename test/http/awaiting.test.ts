import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createClients } from "../../src/http/client-network.ts";
import { respond } from "../../src/http/respond.ts";
import { createHttpApp } from "../../src/http/server.ts";
import { createLog } from "../../src/lib/log.ts";
import { temporaryFolder } from "../support/app.ts";

/** The module as it is in the executable: `scripts/build` makes its text short, and Elysia reads that text. */
async function minified(): Promise<{ createHttpApp: typeof createHttpApp }> {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, "../../src/http/server.ts")],
    target: "bun",
    minify: { syntax: true, whitespace: true },
    outdir: temporaryFolder(),
  });
  return import(outputs[0]?.path ?? "");
}

const log = createLog("error", { write: () => undefined }, () => 0);
const fixed = { path: "/fixed", methods: { GET: () => respond(200, "{}", {}) } };
const row = { path: "/rows/:row", methods: { GET: () => respond(200, "{}", {}) } };

describe.each([
  ["the source", async () => ({ createHttpApp })],
  ["the executable", minified],
])("in %s", (_, load) => {
  test.each(["/fixed", "/rows/a"])("an answer that is there at once is not waited for: %s", async (path) => {
    const app = (await load()).createHttpApp([fixed, row], createClients([]), log);
    expect(app.fetch(new Request(`http://sds.test${path}`))).toBeInstanceOf(Response);
  });
});

test.each([
  ["thrown", () => Promise.resolve().then(() => Promise.reject(new Error("broken")))],
  [
    "thrown at once",
    () => {
      throw new Error("broken");
    },
  ],
])("an error that is %s is answered with 500", async (_, handler) => {
  const broken = createHttpApp([{ path: "/", methods: { GET: handler } }], createClients([]), log);
  expect((await broken.handle(new Request("http://sds.test/"))).status).toBe(500);
});
