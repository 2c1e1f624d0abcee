import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { $ } from "bun";

const SPEED = 60;
const EXPECTED = [0, 2, 6, 14, 30];
/** Minutes of the fast clock: attempts are looked for once a second of it, and take a moment themselves. */
const TOLERANCE = 0.25;

const data = mkdtempSync(join(tmpdir(), "sds-schedule-"));
const env = { ...process.env, SDS_DATA: data, SDS_EGRESS_ALLOW: "127.0.0.0/8" };
const attempts: number[] = [];
const bodies = new Set<string>();
const receiver = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    attempts.push(performance.now());
    bodies.add((await request.text()) + request.headers.get("x-service-signature"));
    return new Response(null, { status: 500 });
  },
});

async function sds<T>(...args: string[]): Promise<T> {
  return (await $`dist/sds ${args} --json`.env(env).quiet().json()) as T;
}

await sds("shop", "add", "alpha.myshopify.com");
await sds("webhook", "set", "--url", receiver.url.href, "--all-topics");
const { id } = await sds<{ id: string }>("webhook", "test");
const server = Bun.spawn(["faketime", "-f", `+0 x${SPEED}`, "dist/sds", "serve", "--port", "0"], { env, stderr: "inherit" });
try {
  const deadline = performance.now() + 60_000;
  let status = "";
  while (status !== "dead" && performance.now() < deadline) {
    await Bun.sleep(500);
    ({ status } = await sds<{ status: string }>("delivery", "show", id));
  }
  const minutes = attempts.map((at) => ((at - (attempts[0] ?? 0)) / 60_000) * SPEED);
  process.stdout.write(`status: ${status}; attempts at minutes: ${minutes.map((at) => at.toFixed(2)).join(", ")}; different bodies: ${bodies.size}\n`);
  const right = minutes.length === EXPECTED.length && EXPECTED.every((at, index) => Math.abs(at - (minutes[index] ?? -1)) <= TOLERANCE);
  if (status !== "dead" || !right || bodies.size !== 1) throw new Error(`expected dead after attempts at ${EXPECTED.join(", ")} minutes`);
} finally {
  server.kill();
  await server.exited;
  receiver.stop(true);
  rmSync(data, { recursive: true, force: true });
}
