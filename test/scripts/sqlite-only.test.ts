import { expect, test } from "bun:test";
import { join } from "node:path";
import { SQLITE_ONLY } from "../flow/sqlite-only.ts";

test("each flow test that is skipped on PostgreSQL exists", async () => {
  for (const { file, test: name } of SQLITE_ONLY) {
    const source = await Bun.file(join(import.meta.dir, `../flow/${file}.test.ts`)).text();
    expect(source).toContain(`"${name ?? ""}`);
  }
});
