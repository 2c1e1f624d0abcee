import { expect, test } from "bun:test";
import { failure, Program } from "../support/program.ts";

test("a second serve is refused with process and address of the first, and changes nothing", async () => {
  const program = await Program.withShop();
  const first = await program.serve();
  const second = await program.run(["serve", "--port", "0"]);
  expect(second).toEqual(
    failure(
      1,
      `\`sds serve\` already runs for ${program.data}, process ${first.pid} at ${first.url}: stop it first, or name ` +
        "another folder with --data",
    ),
  );
  expect(await program.json(["status"])).toMatchObject({ serving: true });
  expect((await program.run(["admin", "link"])).stdout).toStartWith(first.url);
  // Commands work while `serve` runs, except those that need exclusive use of the folder, such as a restore.
  expect((await program.run(["restore", "/dev/null", "--yes"])).status).not.toBe(0);
  await program.json(["key", "create", "--label", "Beside"]);
});

test("a killed serve leaves the folder to the next one, and a stopped one too", async () => {
  const program = await Program.withShop();
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    const server = await program.serve();
    await server.stop(signal);
  }
  const third = await program.serve();
  expect(await program.json(["status"])).toMatchObject({ serving: true });
  expect((await program.run(["serve"])).stderr).toContain(`process ${third.pid} at ${third.url}: `);
});

test("of several that start at once, one serves, and it keeps its address", async () => {
  const program = await Program.withShop();
  const killed = await program.serve();
  await killed.stop("SIGKILL");
  const starts = await Promise.allSettled(Array.from({ length: 3 }, () => program.serve()));
  const [server, ...others] = starts.flatMap((start) => (start.status === "fulfilled" ? start.value : []));
  expect(others).toEqual([]);
  for (const { reason } of starts.filter((start) => start.status === "rejected"))
    expect(String(reason)).toContain(`process ${server?.pid} at ${server?.url}: stop it first`);
});
