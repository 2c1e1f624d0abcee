import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "../../src/client/client.ts";
import { copy } from "../../src/client/copy.ts";
import { openFileStore } from "../../src/client/file-store.ts";
import { RESOURCES } from "../../src/domain/resources.ts";
import { type ApiShop, apiShop, byId } from "../support/api-shop.ts";
import { temporaryFolder } from "../support/app.ts";
import { runIn } from "../support/client-project.ts";
import { PROGRAM } from "../support/program.ts";
import { customer, gid, order, subscription } from "../support/records.ts";
import { savedProgram } from "../support/samples.ts";

/** One way to keep copies of all resources. */
interface Copies {
  name: string;
  update(): Promise<void>;
  read(resource: string): Promise<unknown[]>;
}

/** Keeps copies with the client's package. */
function ofClient(shop: ApiShop, folder: string): Copies {
  const store = (resource: string) => openFileStore<{ id: string }>(join(folder, `${resource}.copy`));
  return {
    name: "copy()",
    async update() {
      const client = createClient({ url: shop.server.url, key: shop.key });
      for (const resource of RESOURCES) {
        const opened = await store(resource);
        await copy<{ id: string }>(client[resource], opened);
        await opened.close();
      }
    },
    async read(resource) {
      const opened = await store(resource);
      await opened.close();
      return [...opened.rows.values()];
    },
  };
}

/** Keeps copies with `sds pull`, whose output is appended to a file for each resource. */
function ofPull(shop: ApiShop, folder: string): Copies {
  const file = (resource: string) => join(folder, `${resource}.ndjson`);
  return {
    name: "sds pull",
    async update() {
      for (const resource of RESOURCES) {
        const flags = ["--url", shop.server.url, "--resource", resource, "--state", join(folder, `${resource}.state`)];
        const { status, stdout, stderr } = await runIn(folder, [...PROGRAM, "pull", ...flags], {
          SDS_KEY_FILE: shop.keyFile,
        });
        expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
        appendFileSync(file(resource), stdout);
      }
      expect(existsSync(join(folder, "data"))).toBe(false);
    },
    read: async (resource) =>
      readFileSync(file(resource), "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
  };
}

/** Keeps copies with puller.py. */
function ofPython(shop: ApiShop, folder: string): Copies {
  const database = join(folder, "copy.db");
  const puller = savedProgram("puller.py");
  return {
    name: "puller.py",
    async update() {
      const command = ["python3", puller, "--url", shop.server.url, "--database", database];
      const { status, stderr } = await runIn(folder, command, { SDS_KEY_FILE: shop.keyFile });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    },
    async read(resource) {
      const db = new Database(database, { readonly: true });
      try {
        const query = db.query<{ json: string }, [string]>("SELECT json FROM row WHERE resource = ?");
        return query.all(resource).map(({ json }) => JSON.parse(json));
      } finally {
        db.close();
      }
    },
  };
}

test("copies equal the mirror, at first and after changes, redactions of fields and a killed serve", async () => {
  const shop = await apiShop(300);
  const { port } = new URL(shop.server.url);
  const copies = [ofClient, ofPull, ...(Bun.which("python3") === null ? [] : [ofPython])].map((make) =>
    make(shop, temporaryFolder()),
  );
  const changes = [
    [],
    [
      customer(7, { email: "ada@example.com", firstName: "Ada" }),
      order(7, 2),
      subscription(301, { customer: gid.customer(7) }),
    ],
    [customer(7, { email: null, firstName: null }), ...Array.from({ length: 300 }, (_, index) => order(index + 1, 3))],
    [subscription(2, { status: "CANCELLED" })],
  ];
  for (const records of changes) {
    if (records.length > 0) await shop.load(records);
    for (const { name, update, read } of copies) {
      await update();
      for (const resource of RESOURCES)
        expect({ name, resource, rows: byId(await read(resource)) }).toEqual({
          name,
          resource,
          rows: await shop.mirror(resource),
        });
    }
    await shop.server.stop("SIGKILL");
    shop.server = await shop.program.serve(["serve", "--port", port]);
  }
});
