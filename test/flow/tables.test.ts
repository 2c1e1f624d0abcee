import { expect, test } from "bun:test";
import { stripVTControlCharacters } from "node:util";
import { receiveFailed } from "../conformance/fixtures.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { PROGRAM, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";

/** Makes a shop with a key, a dead delivery and a platform webhook that could not be processed. */
async function fullShop(): Promise<{ program: Program; deliveryId: string }> {
  const program = await Program.withShop();
  await program.json(["key", "create", "--label", "Warehouse"]);
  const store = await program.openStore();
  const shop = await store.shops.find(DOMAIN);
  if (shop === undefined) throw new Error("the shop is missing");
  const deliveryId = await deadDelivery(store, shop);
  await receiveFailed(store, shop);
  await store.close();
  return { program, deliveryId };
}

test("a table fits the terminal: its widest columns are cut, and the first one stays whole", async () => {
  const { program, deliveryId } = await fullShop();
  let shown = "";
  const child = Bun.spawn([...PROGRAM, "delivery", "list"], {
    env: await program.environment({ NO_COLOR: "1" }),
    terminal: {
      cols: 90,
      rows: 30,
      data: (_, bytes) => {
        shown += Buffer.from(bytes).toString();
      },
    },
  });
  expect(await child.exited).toBe(0);
  const lines = stripVTControlCharacters(shown).trimEnd().split("\r\n");
  expect(lines).toEqual([
    expect.stringMatching(/^ID +AGE +STATUS +TOPIC +ABOUT +ATTEMPTS {2}HTTP {2}ERROR$/),
    expect.stringMatching(new RegExp(`^${deliveryId} .*…`)),
  ]);
  expect(lines.filter((line) => Bun.stringWidth(line) > 90)).toEqual([]);
});

test("each table has headings, and a value below each", async () => {
  const { program, deliveryId } = await fullShop();
  const lines = async (...args: string[]) => {
    const { stdout } = await program.run(args);
    return stdout.trimEnd().split("\n");
  };
  const attempts = (await lines("delivery", "show", deliveryId)).slice(-2);
  const headings = "DOMAIN               PLAN  CURRENCY  CREATED";
  expect(await lines("shop", "list")).toEqual([headings, expect.stringMatching(/^alpha\S+ {2}pro {3}USD {7}\S+Z$/)]);
  expect(await lines("key", "list")).toEqual([
    expect.stringMatching(/^ID +LABEL {6}FINGERPRINT {2,}CREATED +MADE BY +LAST USED$/),
    expect.stringMatching(/^\S+ +Warehouse {2}\S+ +\S+Z {2}command line {2}never$/),
  ]);
  expect(await lines("delivery", "list")).toEqual([
    expect.stringMatching(/^ID +AGE +STATUS +TOPIC +ABOUT +ATTEMPTS {2}HTTP {2}ERROR$/),
    expect.stringMatching(/^whd_\S+ {2}\d+ \w+ +dead {4}order\.failed \(test\) {9}1 +\S+ +\S.*\.$/),
  ]);
  expect(await lines("inbox", "list")).toEqual([
    expect.stringMatching(/^ID {2}TOPIC {8}ABOUT {2}STATUS {2}ATTEMPTS {2}RECEIVED +ERROR$/),
    expect.stringMatching(/^\d +orders\/paid {2}s {6}failed {2}1 {9}\S+Z {2}It failed\.$/),
  ]);
  expect(attempts[0]).toMatch(/^ATTEMPT {2}STARTED +TOOK +HTTP {2}ERROR$/);
  expect(attempts[1]).toMatch(/^1 {8}\S+Z {2}\d+ ms +500 {3}\S.*\.$/);
});
