import { expect, test } from "bun:test";
import { afterTest } from "../support/cleanup.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { cancelFlow, subscription } from "../support/records.ts";
import { DOMAIN, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();
const HOSTILE = `</code></textarea>"'><script>window.hacked=1</script><img src=x onerror="window.hacked=1">`;

/** Starts a platform that accepts the connection, and refuses to start workflows with a message from the test. */
async function refusingPlatform(words: string): Promise<PlatformProcess> {
  const platform = await new PlatformProcess().start();
  const { address } = platform;
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = await request.text();
      if (body.includes("flowTriggerReceive"))
        return Response.json({ data: { flowTriggerReceive: { userErrors: [{ field: null, message: words }] } } });
      const { method, headers } = request;
      return fetch(`${address}${pathname}${search}`, { method, headers, ...(method === "POST" && { body }) });
    },
  });
  afterTest(() => proxy.stop(true));
  platform.address = `http://127.0.0.1:${proxy.port}`;
  return platform;
}

test("a script in a label, a URL, a body or an error is shown as text", async () => {
  const platform = await refusingPlatform(HOSTILE);
  await platform.tell("addShop", { currency: "USD" });
  const { page, url, program, receiver, troubles, goto } = await open({
    env: { ...platform.env, SDS_RETRY_WAITS: "20ms" },
    prepare: async (program) => {
      await program.json(["shop", "connect", DOMAIN, "--client-credentials"]);
      await program.json(["shop", "set", DOMAIN, "--triggers", "all"]);
    },
  });
  const isUnharmed = async () => {
    expect(await page.evaluate<unknown>("window.hacked")).toBeUndefined();
    expect(await page.locator("main img, main script").count()).toBe(0);
  };

  await page.fill("#label", HOSTILE);
  await page.press("#label", "Enter");
  expect(await page.textContent("#notices")).toContain(`This is the new key ${HOSTILE}:`);
  expect((await page.textContent("#keys tbody th"))?.trim()).toBe(HOSTILE);
  await isUnharmed();
  await page.fill("#label", HOSTILE);
  await page.press("#label", "Enter");
  expect(await page.textContent("main form strong")).toBe(HOSTILE);
  await isUnharmed();
  await page.click("#cancel");
  await page.getByRole("link", { name: "Revoke" }).click();
  expect(await page.textContent("main form strong")).toBe(HOSTILE);
  await isUnharmed();

  await goto("/admin/webhooks");
  await page.fill("#url", `https://${HOSTILE}`);
  await page.click("#save-endpoint");
  await page.locator("#url-error").waitFor();
  expect(await page.inputValue("#url")).toBe(`https://${HOSTILE}`);
  await isUnharmed();
  const inPath = `${receiver.url}?q="><script>window.hacked=1</script>`;
  await page.fill("#url", inPath);
  await page.click("#save-endpoint");
  await page.click("#choose-all");
  await page.click("#save-topics");
  expect(await page.textContent("#notices")).toBe("Saved.");
  await goto("/admin/webhooks");
  expect(await page.inputValue("#url")).toBe(inPath);
  await page.click("#clear");
  expect(await page.textContent("main form strong")).toBe(inPath);
  await isUnharmed();

  const records = [subscription(1), cancelFlow("flow", { reason_id: HOSTILE })];
  await program.json(["import", "-", "--events"], {
    stdin: records.map((record) => JSON.stringify(record)).join("\n"),
  });
  const told = (await receiver.gets(2)).find(({ topic }) => topic === "cancel_flow.completed");
  await goto(`/admin/deliveries/${told?.id}`);
  expect(await page.textContent("#body")).toContain("<script>window.hacked=1</script>");
  await isUnharmed();

  await goto("/admin/deliveries/workflows");
  await page.locator("#last .dead").first().waitFor();
  await goto("/admin/deliveries/workflows?status=dead");
  expect(await page.textContent("#last tbody tr:first-child td:nth-of-type(3)")).toContain(HOSTILE);
  await isUnharmed();
  await page.click("#last tbody tr:first-child th a");
  expect(await page.textContent("#verdict")).toContain(HOSTILE);
  expect(await page.textContent("#attempts")).toContain(HOSTILE);
  await isUnharmed();
  await goto(`/admin/deliveries?${new URLSearchParams({ subject: HOSTILE, status: HOSTILE })}`);
  expect(await page.inputValue("#subject")).toBe(HOSTILE);
  expect(await page.textContent("#subject-error")).toContain("<script>window.hacked=1</script>");
  await isUnharmed();

  await page.goto(`${url}/admin/deliveries/${encodeURIComponent(HOSTILE)}`);
  await page.goto(`${url}/admin/sign-in?token=${encodeURIComponent(HOSTILE)}`);
  await isUnharmed();
  await page.click("#open");
  await isUnharmed();
  expect(troubles).toEqual([]);
});

test("the security policy stops a script and a style that are put into a page", async () => {
  const { page, troubles } = await open();
  await page.evaluate(`(() => {
    const script = document.createElement("script");
    script.textContent = "window.hacked = 1";
    document.body.append(script);
    document.body.insertAdjacentHTML("beforeend", '<p id="styled" style="color: rgb(1, 2, 3)" onclick="window.hacked = 1">x</p>');
  })()`);
  await page.click("#styled");
  expect(await page.evaluate<unknown>("window.hacked")).toBeUndefined();
  expect(troubles.filter((text) => text.includes("Content Security Policy"))).toHaveLength(3);
});
