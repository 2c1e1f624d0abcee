import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import { check, look } from "../support/looks.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { subscription } from "../support/records.ts";
import { SAMPLES } from "../support/samples.ts";
import { DOMAIN, type Settings, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();
test("axe finds a mistake that is put into a page", async () => {
  const { page } = await open();
  await page.evaluate(`document.querySelector("main").insertAdjacentHTML("beforeend", "<input><button></button>")`);
  expect((await check(page)).map((violation) => violation.split(" at ")[0])).toEqual([
    "critical, button-name",
    "critical, label",
  ]);
});

type Look = (name: string) => Promise<void>;
type Goto = Settings["goto"];

async function lookAtFields(looked: Look, page: Page, goto: Goto): Promise<void> {
  await goto("/admin/fields");
  for (const [key, label, type, options = ""] of [
    ["gift_note", "A note for the gift", "text"],
    ["weight", "Weight", "number"],
    ["k".repeat(40), "l".repeat(80), "text"],
    ["is_gift", "Is a gift", "boolean"],
    ["until", "Until", "date"],
    ["box", "Size of the box, which subscribers choose in the portal", "choice", "small\nmedium\nas large as possible"],
  ] as const) {
    await page.fill("#key", key);
    await page.fill("#label", label);
    await page.selectOption("#type", type);
    await page.fill("#options", options);
    await page.click("#save-field");
  }
  await page.click("#archive-until");
  await page.fill("#key", "weight");
  await page.fill("#label", "Weight");
  await page.click("#save-field");
  await page.locator("#field-error").waitFor();
  await looked("fields-refused");
  await page.click("#edit-box");
  await looked("field");
  await goto("/admin/fields");
  await page.fill("#subscription", "9");
  await page.click("#find");
  await page.locator("#subscription-error").waitFor();
  await looked("fields-not-found");
  await page.fill("#subscription", "1");
  await page.click("#find");
  await page.getByLabel("Weight").fill("heavy");
  await page.click("#save-values");
  await page.locator("#value-weight-error").waitFor();
  await looked("values-refused");
  await page.getByLabel("Weight").fill("1.5");
  await page.click("#save-values");
  await looked("values");
}

async function lookAtStyle(looked: Look, page: Page, goto: Goto): Promise<void> {
  await goto("/admin/style");
  await page.fill("#source", "@import 'x.css';");
  await page.click("#save-style");
  await page.locator("#source-error").waitFor();
  await looked("style-refused");
  await page.fill("#source", startingStyle());
  await page.click("#save-style");
  await looked("style");
  await page.click("#clear");
  await looked("style-clear");
}

/** The style of docs/storefront.md, "A style to begin with". */
function startingStyle(): string {
  return SAMPLES.find(({ page, language }) => page === "storefront.md" && language === "css")?.code ?? "";
}

test("axe finds nothing wrong with any page, and every page fits a narrow screen", async () => {
  const legacy = `cad_pk_${"ab".repeat(24)}`;
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", { currency: "USD" });
  const { page, program, receiver, goto } = await open({
    env: { ...platform.env, SDS_RETRY_WAITS: "20ms", SDS_DELIVERY_TIMEOUT: "60s" },
  });
  const found: string[] = [];
  const looked = async (name: string) => {
    found.push(...(await look(page, name)));
  };
  const lookAt = async (name: string, path: string) => {
    await goto(path);
    await looked(name);
  };

  // Pages without any data.
  await lookAt("overview-none", "/admin/overview");
  await lookAt("keys-none", "/admin/keys");
  await lookAt("webhooks-none", "/admin/webhooks");
  await lookAt("deliveries-none", "/admin/deliveries");
  await lookAt("triggers-none", "/admin/triggers");
  await lookAt("alerts-none", "/admin/alerts");
  await lookAt("workflows-none", "/admin/deliveries/workflows");
  await lookAt("data-none", "/admin/data");
  await lookAt("fields-none", "/admin/fields");
  await lookAt("style-none", "/admin/style");

  // A long word in a label must wrap.
  const label = `Old CRM of the Hamburg office, which reads ${"customers".repeat(16)}`;
  await program.run(["key", "import", "--label", label, "--legacy"], { stdin: legacy });
  await goto("/admin/keys");
  await page.fill("#label", "Warehouse");
  await page.press("#label", "Enter");
  await looked("keys-new");
  await page.fill("#label", "Warehouse");
  await page.press("#label", "Enter");
  await page.locator("#confirm").waitFor();
  await looked("keys-repeated");
  await goto("/admin/keys");
  await lookAt("keys-revoke", `/admin/keys/${await page.getAttribute("#keys tbody tr:first-child", "id")}/revoke`);
  await goto("/admin/keys");
  await page.fill("#label", " ");
  await page.press("#label", "Enter");
  await page.locator("#label-error").waitFor();
  await looked("keys-refused");

  await goto("/admin/webhooks");
  await page.fill("#url", "https://10.0.0.1/hooks");
  await page.click("#save-endpoint");
  await page.locator("#url-error").waitFor();
  await looked("webhooks-refused");
  await page.fill("#url", receiver.url);
  await page.click("#save-endpoint");
  await page.locator("#choose-topics").waitFor();
  await looked("webhooks-saved");
  await page.click(".catalogue summary");
  await page.click("#every-body summary");
  await looked("webhooks-topics");
  await goto("/admin/webhooks/secret");
  await page.getByRole("button", { name: "Show the signing secret" }).click();
  await looked("webhooks-secret");
  await lookAt("webhooks-rotate", "/admin/webhooks/rotate");
  await page.click("#confirm");
  await looked("webhooks-rotated");

  const release = receiver.hold();
  await goto("/admin/webhooks");
  await page.click("#send-test");
  await page.locator("#test-result").waitFor();
  await looked("webhooks-test-on-its-way");
  await page.click("#test-delivery");
  await page.locator("#on-its-way").waitFor();
  await looked("delivery-on-its-way");
  release();

  receiver.answer = ({ topic }) => new Response(null, { status: topic === "order.failed" ? 503 : 200 });
  for (const topic of ["order.failed", "order.charged", "order.failed", "subscription.created"])
    await program.json(["webhook", "test", "--topic", topic]);
  await eventually(async () => (await program.json<object[]>(["delivery", "list", "--status", "dead"])).length === 2);
  await lookAt("overview", "/admin/overview");
  await lookAt("webhooks-tested", "/admin/webhooks");
  await lookAt("deliveries", "/admin/deliveries");
  await lookAt("deliveries-retry-dead", "/admin/deliveries/retry-dead");
  await lookAt("deliveries-none-found", "/admin/deliveries?subject=999");
  await lookAt("deliveries-refused", "/admin/deliveries?status=x&topic=x&from=x&to=x&subject=x");
  await lookAt("deliveries-dead", "/admin/deliveries?status=dead");
  await page.click("#last th a");
  await looked("delivery");

  await program.json(["shop", "connect", DOMAIN, "--client-credentials"]);
  await program.json(["shop", "set", DOMAIN, "--triggers", "all"]);
  await program.json(["import", "-", "--events"], { stdin: JSON.stringify(subscription(1)) });
  await goto("/admin/deliveries/workflows");
  await page.locator("#last .delivered").waitFor();
  await looked("workflows");
  await lookAt("triggers", "/admin/triggers");
  await lookAt("data", "/admin/data");
  await lookAt("plan", "/admin/plan");

  await lookAtFields(looked, page, goto);
  await lookAtStyle(looked, page, goto);

  await program.json(["shop", "set", DOMAIN, "--plan", "free"]);
  await lookAt("free-fields", "/admin/fields");
  await lookAt("free-style", "/admin/style");
  await lookAt("free-webhooks", "/admin/webhooks");
  await lookAt("free-plan", "/admin/plan");

  await lookAt("nothing-here", "/admin/deliveries/evt_none");
  await page.click("#sign-out");
  await looked("signed-out");
  await lookAt("not-signed-in", "/admin/keys");
  await lookAt("sign-in", "/admin/sign-in?token=wrong");
  await page.click("#open");
  await looked("wrong-link");
  expect(found).toEqual([]);
});
