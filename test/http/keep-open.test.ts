import { expect, spyOn, test } from "bun:test";
import type { Server } from "bun";
import { createClients } from "../../src/http/client-network.ts";
import type { RouteHandler } from "../../src/http/route.ts";
import { createHttpApp } from "../../src/http/server.ts";
import { createLog } from "../../src/lib/log.ts";

test("a connection that was kept open for a long answer may not stay silent for ever after it", async () => {
  const answer: RouteHandler = (_request, { keepOpen }) => {
    using _open = keepOpen();
    return new Response("done");
  };
  const log = createLog("error", { write: () => undefined }, Date.now);
  const app = createHttpApp([{ path: "/long", methods: { GET: answer } }], createClients([]), log).listen({
    port: 0,
    hostname: "::1",
  });
  const server = app.server as Server<unknown>;
  const timeout = spyOn(server, "timeout");
  try {
    expect(await (await fetch(new URL("/long", server.url))).text()).toBe("done");
    expect(timeout.mock.calls.map(([, seconds]) => seconds)).toEqual([0, 30]);
  } finally {
    await app.stop(true);
  }
});
