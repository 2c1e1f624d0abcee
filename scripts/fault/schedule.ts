import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { $, Glob } from "bun";

const SPEED = 60;
const WAITS = [2, 4, 8, 16];
/**
 * How late an attempt may be. The fast clock changes dates, but not timers. sds looks for due deliveries once in a real
 * second. In a real second, the fast clock moves by a minute.
 */
const MOST_LATE_MINUTES = 1.2;

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
// The library is preloaded, because the faketime command would start the program as a child that we could not stop.
const [library] = [...new Glob("/usr/lib/*/faketime/libfaketime.so.1").scanSync("/")];
const server = Bun.spawn(["dist/sds", "serve", "--port", "0"], {
  env: { ...env, LD_PRELOAD: library, FAKETIME: `+0 x${SPEED}` },
  stdout: "ignore",
  stderr: "ignore",
});
try {
  const deadline = performance.now() + 60_000;
  let status = "";
  while (status !== "dead" && performance.now() < deadline) {
    await Bun.sleep(500);
    ({ status } = await sds<{ status: string }>("delivery", "show", id));
  }
  const minutes = attempts.map((at) => ((at - (attempts[0] ?? 0)) / 60_000) * SPEED);
  process.stdout.write(
    `status: ${status}; attempts at minutes: ${minutes.map((at) => at.toFixed(2)).join(", ")}; different bodies: ${bodies.size}\n`,
  );
  const late = WAITS.map((wait, index) => (minutes[index + 1] ?? Number.NaN) - (minutes[index] ?? Number.NaN) - wait);
  const right =
    minutes.length === WAITS.length + 1 && late.every((minutes) => minutes > -0.1 && minutes <= MOST_LATE_MINUTES);
  if (status !== "dead" || !right || bodies.size !== 1)
    throw new Error(`expected dead after waits of ${WAITS.join(", ")} minutes, each at most ${MOST_LATE_MINUTES} late`);
} finally {
  server.kill();
  await server.exited;
  receiver.stop(true);
  rmSync(data, { recursive: true, force: true });
}
