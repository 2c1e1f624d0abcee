import { describe, expect, test } from "bun:test";
import { engines } from "./engines.ts";

describe.each(engines())("$name: figures of the database", (engine) => {
  test("are its bytes, those of SQLite's log, and no backup at first", async () => {
    const { store } = await engine.open();
    const { bytes, walBytes, lastBackupAt } = await store.figures();
    expect(bytes).toBeGreaterThan(0);
    expect(walBytes === null).toBe(engine.name === "postgres");
    expect(lastBackupAt).toBeNull();
  });
});
