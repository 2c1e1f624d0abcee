import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { customer } from "../support/records.ts";
import { canMount, mountDisk } from "../support/small-disk.ts";

/** Takes all space that is left. */
function fill(disk: string): void {
  for (let size = 1024 * 1024; size >= 4096; size /= 2) {
    let file = "";
    try {
      for (;;) {
        file = join(disk, `fill-${crypto.randomUUID()}`);
        writeFileSync(file, Buffer.alloc(size));
      }
    } catch {
      rmSync(file, { force: true });
    }
  }
}

const FULL = (folder: string) => `the disk of ${folder} is full (`;

describe.skipIf(!canMount)("on a full disk", () => {
  test("an import says which disk is full, what was imported, and that it can be run again", async () => {
    const disk = mountDisk(8);
    if (disk === undefined) return;
    const program = new Program(join(disk, "data"));
    await program.json(["shop", "add", "alpha.myshopify.com"]);
    const lines = Array.from({ length: 12_000 }, (_, n) => JSON.stringify(customer(n + 1)));
    const { status, stdout, stderr } = await program.run(["import", "-"], { stdin: lines.join("\n") });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toStartWith(`sds: ${FULL(program.data)}`);
    const imported = Number(
      /; lines 1 to (\d+) were imported, the rest was not\. When that is solved, import the file again/.exec(
        stderr,
      )?.[1],
    );
    expect(imported).toBeWithin(1_000, 12_000);
    expect(await program.count("customers", 1)).toBe(imported);
  });

  test("a first start says so", async () => {
    const disk = mountDisk(1);
    if (disk === undefined) return;
    fill(disk);
    const program = new Program(join(disk, "data"));
    const { status, stderr } = await program.run(["serve", "--port", "0"]);
    expect({ status, lines: stderr.split("\n").length }).toEqual({ status: 1, lines: 2 });
    expect(stderr).toMatch(/the disk of .* is full|no space left on device/);
  });

  test("a later start says so, and status is 1 with the reason while readyz is 503", async () => {
    const disk = mountDisk(8);
    if (disk === undefined) return;
    const program = new Program(join(disk, "data"));
    await program.json(["shop", "add", "alpha.myshopify.com"]);
    const server = await program.serve();
    expect((await program.run(["status"])).status).toBe(0);
    fill(disk);
    await eventually(async () => (await fetch(`${server.url}/readyz`)).status === 503);
    const reason = "The database cannot be written: its disk is full.";
    expect(await program.run(["status"])).toMatchObject({
      status: 1,
      stderr: `sds: not serving: ${server.url} answers with 503: ${reason}\n`,
    });
    await server.stop("SIGKILL");
    // `serve` may start on a full disk, because reads need no space.
    const started = await program.serve();
    await eventually(() => started.output.includes(FULL(program.data)));
  });
});
