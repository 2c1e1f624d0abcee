import { Database } from "bun:sqlite";
import { join } from "node:path";
import { launchChromium } from "../test/support/settings-page.ts";

const FOLDER = join(import.meta.dir, "../src/docs/pictures");
const VIEWPORT = { width: 1280, height: 800 };
const THEMES = ["light", "dark"] as const;
const DAY_MS = 86_400_000;
const WEBP_QUALITY = 82;

/** Runs the demo. @returns its addresses, and its data folder */
async function startDemo() {
  const demo = Bun.spawn(["dist/sds", "demo", "--port", "0"], { stdout: "pipe", stderr: "ignore" });
  let text = "";
  for await (const chunk of demo.stdout) {
    text += new TextDecoder().decode(chunk);
    const [, link] = /Settings page: (\S+)/.exec(text) ?? [];
    const [, data] = /--data (\S+) /.exec(text) ?? [];
    if (link !== undefined && data !== undefined) return { demo, link, data, url: new URL(link).origin };
  }
  throw new Error("the demo ended");
}

/** Gives the demo's shop a month of counted deliveries, which the overview shows as bars. */
function addPastDays(data: string): void {
  const db = new Database(join(data, "sds.db"));
  const insert = db.query(
    "INSERT INTO delivery_counts (shop_id, kind, day, outcome, attempts, last_at) SELECT id, 'webhook', ?, ?, ?, ? FROM shops",
  );
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  for (let age = 1; age < 30; age += 1) {
    const day = today - age * DAY_MS;
    const isOutage = age === 12;
    const attempts = { delivered: isOutage ? 90 : 320 + ((age * 37) % 90), retried: isOutage ? 160 : (age * 5) % 19 };
    for (const [outcome, count] of Object.entries({ ...attempts, ...(isOutage && { dead: 24 }) }))
      insert.run(day, outcome, count, day);
  }
  db.close();
}

/** Waits until a delivery is dead. @returns its id */
async function deadDelivery(data: string): Promise<string> {
  for (;;) {
    const list = Bun.spawnSync(["dist/sds", "--data", data, "delivery", "list", "--status", "dead", "--json"]);
    const [dead] = JSON.parse(list.stdout.toString()) as { id: string }[];
    if (dead !== undefined) return dead.id;
    await Bun.sleep(1_000);
  }
}

const { demo, link, data, url } = await startDemo();
const browser = await launchChromium();
try {
  addPastDays(data);
  const pages = { overview: "overview", deliveries: "deliveries", delivery: `deliveries/${await deadDelivery(data)}` };
  const context = await browser.newContext({ viewport: VIEWPORT, locale: "en-US", reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(link);
  await page.click("#open");
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${url}/admin/${path}`, { waitUntil: "networkidle" });
      const file = join(FOLDER, `${name}-${theme}.webp`);
      const bytes = await new Bun.Image(await page.screenshot()).webp({ quality: WEBP_QUALITY }).bytes();
      process.stdout.write(`${file}: ${await Bun.write(file, bytes)} bytes\n`);
    }
  }
} finally {
  await browser.close();
  demo.kill();
  await demo.exited;
}
