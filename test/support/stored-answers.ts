import { expect } from "bun:test";
import { type App, openApp } from "../../src/compose/app.ts";
import { readConfig } from "../../src/config.ts";
import { createLog } from "../../src/lib/log.ts";
import { nextTurn } from "../../src/lib/waits.ts";
import { randomBytes } from "./app.ts";
import { afterTest } from "./cleanup.ts";
import { askApp } from "./described.ts";
import type { Answers } from "./stored-database.ts";

/**
 * Opens a PostgreSQL database with the current program. The program runs at the real time, because its clock must be
 * near the server's clock.
 */
export async function openOnPostgres(url: string, data: string): Promise<App> {
  const now = Date.now;
  const app = await openApp(readConfig({ data, port: "0" }, { SDS_DATABASE_URL: url }), {
    now,
    clock: now,
    random: randomBytes,
    fetch,
    resolve: async () => [],
    sleep: nextTurn,
    log: createLog("error", { write: () => true }, now),
  });
  afterTest(() => app.stop());
  return app;
}

/**
 * Sends every stored request, and expects that the answer has the stored bytes. Only checkpoints may differ, because a
 * checkpoint begins with the time of the answer.
 */
export async function expectStoredPages(app: App, { requests }: Answers): Promise<void> {
  expect(requests.length).toBeGreaterThan(50);
  for (const { key, path, status, body } of requests) {
    const response = await askApp(app, path, { headers: { Authorization: `Bearer ${key}` } });
    const answered = withoutCheckpoint(await response.text());
    expect({ path, status: response.status, body: answered }).toEqual({ path, status, body: withoutCheckpoint(body) });
  }
}

function withoutCheckpoint(body: string): string {
  return body.replace(/"nextCursor":"[^"]+~chg_[^"]+"/, '"nextCursor":"a checkpoint"');
}

/** Like `expectStoredPages`; also checks that the app can decrypt the stored secrets. */
export async function expectStoredAnswers(app: App, answers: Answers): Promise<void> {
  await expectStoredPages(app, answers);
  for (const { domain, intakeSecret } of answers.shops)
    expect((await app.store.shops.intakeSecret(domain))?.secret).toBe(intakeSecret);
}
