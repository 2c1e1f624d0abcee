import { expect, test } from "bun:test";
import type { BunRequest } from "bun";
import { createClients } from "../../src/http/client-network.ts";
import { respond } from "../../src/http/respond.ts";
import type { RouteHandler } from "../../src/http/routes.ts";
import { createHttpApp } from "../../src/http/server.ts";
import { createLog } from "../../src/lib/log.ts";
import { eventually } from "../support/eventually.ts";

const log = createLog("error", { write: () => undefined }, () => 0);

function appOf(path: string, handler: RouteHandler) {
  return createHttpApp([{ path, methods: { GET: handler } }], createClients([]), log);
}

test.each(["/fixed", "/rows/:row"])("an answer without a wait reaches Bun synchronously: %s", (path) => {
  const { routes } = appOf(path, () => respond(200, "{}", {})).config.serve ?? {};
  const route = (routes as Record<string, (request: BunRequest) => unknown>)[path];
  const request = Object.assign(new Request("http://sds.test/"), { params: { row: "a" } }) as unknown as BunRequest;
  expect(route?.(request)).toBeInstanceOf(Response);
});

test.each<[string, RouteHandler]>([
  ["thrown", () => Promise.resolve().then(() => Promise.reject(new Error("broken")))],
  [
    "thrown at once",
    () => {
      throw new Error("broken");
    },
  ],
])("an error that is %s is answered with 500", async (_, handler) => {
  const { status } = await appOf("/", handler).handle(new Request("http://sds.test/"));
  expect(status).toBe(500);
});

test("an answer is observed before the rest of the request's body is dropped", async () => {
  const observed: number[] = [];
  const observers = [({ response }: { response: Response }) => void observed.push(response.status)];
  const { handle } = createHttpApp([], createClients([]), log, { observers });
  const { readable, writable } = new TransformStream();
  const request = new Request("http://sds.test/", { method: "POST", body: readable, headers: { Connection: "close" } });
  const answered = handle(request).then(({ status }) => observed.push(-status));
  await eventually(() => observed.length > 0);
  expect(observed).toEqual([404]);
  await writable.close();
  await answered;
});
