import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { auditEntry, COMMAND_LINE } from "../../src/domain/audit.ts";
import { masterKeyLoss, resetMasterKey, rotateMasterKey } from "../../src/store/master-key-change.ts";
import type { Store } from "../../src/store/port/store.ts";
import { addShop, failures, TOKENS } from "../conformance/fixtures.ts";
import { randomBytes, START, temporaryFolder } from "../support/app.ts";
import { openStoreIn } from "../support/open-store.ts";
import { hasPostgres } from "../support/postgres-server.ts";
import { databaseWithTables, openStoreAt } from "../support/postgres-store.ts";

const ENTRY = auditEntry({ ...COMMAND_LINE, from: "root@vm" }, START, "secrets.replaced");
const SIGN_IN = auditEntry(COMMAND_LINE, START, "session.begun");
const SESSION = new Uint8Array(32).fill(7);

/** Puts a secret into every table that has sealed secrets. */
async function fill(store: Store): Promise<void> {
  const shop = await addShop(store);
  await store.webhooks.secret(shop.id, START);
  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await store.alerts.addAddress(shop.id, "ana@example.com", START);
  await store.sessions.addLink(shop.id, new Uint8Array(32).fill(6), START + 1_000);
  await store.sessions.begin(new Uint8Array(32).fill(6), SESSION, SIGN_IN, START + 100_000);
  await store.settingsPage.putNotice(SESSION, "/keys", "a new key", START + 100_000);
}

async function secretsOf(store: Store) {
  const [shop] = await store.shops.list();
  const id = shop?.id ?? 0;
  return {
    intake: (await store.shops.intakeSecret("alpha.myshopify.com"))?.secret,
    signing: await store.webhooks.secrets(id),
    tokens: await store.connections.tokens(id),
    // `recipient` contains a token for the link in the e-mail. The token is stored sealed.
    notice: (await store.alerts.claimNotice(START, () => START))?.recipient,
    page: await store.settingsPage.takeNotices(SESSION, "/keys", START),
  };
}

function changeIn(folder: string) {
  return {
    location: { folder },
    masterKeyFile: join(folder, "master.key"),
    random: randomBytes,
    now: () => START,
    sleep: Bun.sleep,
  };
}

/** Rotates the key of a data folder. @returns a copy of the folder from before the rotation, and the folder */
async function rotated() {
  const folder = temporaryFolder();
  const store = await openStoreIn(folder);
  await fill(store);
  await store.close();
  const before = temporaryFolder();
  for (const name of ["sds.db", "master.key"]) copyFileSync(join(folder, name), join(before, name));
  await rotateMasterKey(changeIn(folder));
  return { before, after: folder };
}

async function opened(folder: string) {
  const store = await openStoreIn(folder);
  const secrets = await secretsOf(store);
  await store.close();
  return secrets;
}

describe("a new master key", () => {
  test("opens every secret, and so does the file at each step before", async () => {
    const { before, after } = await rotated();
    const [old, next] = [before, after].map((folder) => readFileSync(join(folder, "master.key"), "utf8"));
    expect(next).toMatch(/^[0-9a-f]{64}\n$/);
    expect(next).not.toBe(old as string);
    // After a kill, the key file has both keys. The database is as it was before or after the transaction.
    for (const folder of [before, after]) writeFileSync(join(folder, "master.key"), `${next}${old}`);
    const expected = await opened(before);
    expect(expected.page).toEqual(["a new key"]);
    expect(await opened(after)).toEqual(expected);
    await rotateMasterKey(changeIn(after));
    expect(readFileSync(join(after, "master.key"), "utf8").split("\n")).toHaveLength(2);
    expect({ ...(await opened(after)), page: expected.page }).toEqual(expected);
  });

  test("seals every column that has secrets", () => {
    const folder = temporaryFolder();
    return openStoreIn(folder).then(async (store) => {
      await store.close();
      const db = new Database(join(folder, "sds.db"), { readonly: true });
      const tables = db.query<{ name: string }, []>(
        `SELECT DISTINCT tables.name FROM sqlite_schema AS tables JOIN pragma_table_info(tables.name) AS columns
         WHERE tables.type = 'table' AND columns.name IN ('sealed', 'intake_secret') ORDER BY 1`,
      );
      // src/store/quiet/sealed-secrets.ts must name these tables.
      expect(tables.all().map(({ name }) => name)).toEqual([
        "admin_notices",
        "alert_addresses",
        "connections",
        "shops",
        "webhook_secrets",
      ]);
      db.close();
    });
  });

  test("takes the place of a file behind a symbolic link", async () => {
    const { after } = await rotated();
    const path = join(after, "master.key");
    const target = join(temporaryFolder(), "key");
    copyFileSync(path, target);
    rmSync(path);
    symlinkSync(target, path);
    const former = readFileSync(target, "utf8");
    await rotateMasterKey(changeIn(after));
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, "utf8")).not.toBe(former);
    expect(await opened(after)).toMatchObject({ tokens: TOKENS });
  });

  test("is refused while another process uses the folder, or without the present key", async () => {
    const { after } = await rotated();
    const store = await openStoreIn(after);
    expect(await failures([rotateMasterKey(changeIn(after))])).toMatchObject([
      { message: expect.stringContaining("is in use") },
    ]);
    await store.close();
    writeFileSync(join(after, "master.key"), "0".repeat(64));
    expect(await failures([rotateMasterKey(changeIn(after))])).toMatchObject([
      { message: expect.stringContaining("is not the key of the stored secrets") },
    ]);
  });
});

describe("a lost master key", () => {
  test("is replaced with new secrets, and the mirror stays", async () => {
    const { after } = await rotated();
    const former = await opened(after);
    const path = join(after, "master.key");
    expect(await failures([masterKeyLoss(changeIn(after))])).toMatchObject([{ code: "conflict" }]);
    expect(await failures([resetMasterKey(changeIn(after), ENTRY)])).toMatchObject([{ code: "conflict" }]);
    // Root reads every file, so a folder stands in for another user's file.
    renameSync(path, `${path}.elsewhere`);
    mkdirSync(path);
    const unreadable = [{ message: expect.stringContaining("cannot read the master key") }];
    expect(await failures([masterKeyLoss(changeIn(after))])).toMatchObject(unreadable);
    expect(await failures([resetMasterKey(changeIn(after), ENTRY)])).toMatchObject(unreadable);
    rmSync(path, { recursive: true });
    renameSync(`${path}.elsewhere`, path);
    writeFileSync(path, "no key");
    const lost = [{ domain: "alpha.myshopify.com", hasSigningSecret: true, isConnected: true }];
    expect(await masterKeyLoss(changeIn(after))).toEqual(lost);
    expect(await resetMasterKey(changeIn(after), ENTRY)).toEqual(lost);
    const kept = readdirSync(after).find((name) => name.startsWith("master.key.before-reset")) ?? "";
    expect(readFileSync(join(after, kept), "utf8")).toBe("no key");
    const made = await opened(after);
    expect(made.intake).toStartWith("intake_");
    expect(made.intake).not.toBe(former.intake as string);
    expect(made.signing).toHaveLength(former.signing.length);
    expect(made.signing).not.toEqual(former.signing);
    expect(made.tokens).toBeUndefined();
    const store = await openStoreIn(after);
    const [shop] = await store.shops.list();
    expect(await store.audit.list(shop?.id ?? 0, {}, {}, 1)).toMatchObject([{ action: "secrets.replaced" }]);
    await store.close();
    rmSync(path);
    await resetMasterKey(changeIn(after), ENTRY);
    expect(existsSync(path)).toBe(true);
  });
});

test.skipIf(!hasPostgres())(
  "on PostgreSQL a live node refuses it, and one with the former key gets no work",
  async () => {
    const url = await databaseWithTables();
    const masterKeyFile = join(temporaryFolder(), "master.key");
    const store = await openStoreAt(url, { masterKeyFile });
    await fill(store);
    const change = { ...changeIn(""), location: { url, passwordFile: null }, masterKeyFile, now: Date.now };
    const key = readFileSync(masterKeyFile, "utf8");
    await store.nodes?.beat();
    expect(await failures([rotateMasterKey(change)])).toMatchObject([{ message: expect.stringContaining("serve") }]);
    await store.nodes?.leave();
    expect(readFileSync(masterKeyFile, "utf8")).toBe(key);
    await store.check();
    await rotateMasterKey(change);
    const message = "The master key was changed: give this node the new file, and start it again.";
    expect(await failures([store.check()])).toMatchObject([{ message }]);
    // A node that was paused during the change sends its next heartbeat afterwards. It gets no work.
    expect(await failures([store.nodes?.beat() ?? Promise.resolve()])).toMatchObject([{ message }]);
    expect((await store.nodes?.status())?.nodes).toEqual([]);
    const secrets = await secretsOf(await openStoreAt(url, { masterKeyFile }));
    expect(secrets).toMatchObject({ tokens: TOKENS, page: ["a new key"], signing: { length: 1 } });
    const lone = { ...change, masterKeyFile: join(temporaryFolder(), "master.key") };
    expect(await resetMasterKey(lone, ENTRY)).toMatchObject([{ isConnected: true }]);
  },
);

test.skipIf(!hasPostgres())("on PostgreSQL two changes of the key exclude each other", async () => {
  const url = await databaseWithTables();
  const masterKeyFile = join(temporaryFolder(), "master.key");
  const store = await openStoreAt(url, { masterKeyFile });
  await fill(store);
  const location = { url, passwordFile: null };
  const change = { ...changeIn(""), location, masterKeyFile, now: Date.now };
  const module = join(import.meta.dir, "../../src/store/master-key-change.ts");
  const script = `
    import { rotateMasterKey } from ${JSON.stringify(module)};
    const random = (bytes) => crypto.getRandomValues(new Uint8Array(bytes));
    const change = ${JSON.stringify({ location, masterKeyFile })};
    await rotateMasterKey({ ...change, random, now: Date.now, sleep: Bun.sleep }).catch((thrown) => {
      console.log(thrown.message);
      process.exit(1);
    });`;
  const outputs: string[] = [];
  // Runs another process after this process has read the key, and before it writes the file.
  const random = (bytes: number) => {
    if (outputs.length === 0)
      outputs.push(Bun.spawnSync([process.execPath, "--eval", script], { timeout: 60_000 }).stdout.toString());
    return randomBytes(bytes);
  };
  await rotateMasterKey({ ...change, random });
  expect(outputs).toEqual([expect.stringContaining("is in use")]);
  expect(await secretsOf(await openStoreAt(url, { masterKeyFile }))).toMatchObject({ tokens: TOKENS });
});
