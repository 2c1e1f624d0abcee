/**
 * Measures the lowest possible cost of storing webhooks. Inserts the rows of a file into one plain table of a new
 * database, with the pragmas of sds. Each transaction has ROWS_PER_COMMIT rows. Prints the seconds.
 * `bun scripts/bench/bodies.ts FILE DATABASE ROWS_PER_COMMIT`
 */
import { readFileSync } from "node:fs";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { UPGRADE } from "../../test/support/open-store.ts";
import type { PlatformPost } from "./platform-posts.ts";

const [file = "", target = "", perCommit = ""] = process.argv.slice(2);
const posts: PlatformPost[] = readFileSync(file, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));
const db = openDatabase(target, 30_000, UPGRADE);
db.run("CREATE TABLE bodies (webhook_id TEXT, topic TEXT, subject TEXT, body TEXT, triggered_at INTEGER) STRICT");
const insert = db.prepare("INSERT INTO bodies VALUES (?, ?, ?, ?, ?)");

const start = performance.now();
for (let done = 0; done < posts.length; done += Number(perCommit)) {
  db.run("BEGIN IMMEDIATE");
  for (const { webhookId, topic, subject, body, triggeredAt } of posts.slice(done, done + Number(perCommit))) {
    insert.run(webhookId, topic, subject, body, triggeredAt);
  }
  db.run("COMMIT");
}
process.stdout.write(`${(performance.now() - start) / 1_000}\n`);
db.close();
