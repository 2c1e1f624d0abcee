import { expect, test } from "bun:test";
import { createClients } from "../../src/http/client-network.ts";
import { respond } from "../../src/http/respond.ts";
import { createHttpApp } from "../../src/http/server.ts";
import { createLog } from "../../src/log.ts";

const log = createLog("error", { write: () => undefined }, () => 0);
const fixed = { path: "/fixed", methods: { GET: () => respond(200, "{}", {}) } };
const row = { path: "/rows/:row", methods: { GET: () => respond(200, "{}", {}) } };
const app = createHttpApp([fixed, row], createClients([]), log);

test.each(["/fixed", "/rows/a"])("an answer that is there at once is not waited for: %s", (path) => {
  expect(app.fetch(new Request(`http://sds.test${path}`))).toBeInstanceOf(Response);
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
