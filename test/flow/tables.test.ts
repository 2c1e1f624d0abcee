import { expect, test } from "bun:test";
import { stripVTControlCharacters } from "node:util";
import type { Shop } from "../../src/domain/shop.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { PROGRAM, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";

test("a table fits the terminal: its widest columns are cut, and the first one stays whole", async () => {
  const program = await Program.withShop();
  const store = await program.openStore();
  const deliveryId = await deadDelivery(store, (await store.shops.find(DOMAIN)) as Shop);
  await store.close();
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
