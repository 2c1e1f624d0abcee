import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";
import { cookieOf } from "../support/visitor.ts";

const DOMAIN = "alpha.myshopify.com";
const LOCAL = { SDS_EGRESS_ALLOW: "127.0.0.0/8" };

/** Opens a printed sign-in link, and presses its button, as a browser does. */
async function signIn(url: string) {
  const body = new URL(url).searchParams;
  const opened = await fetch(new URL("/admin/sign-in", url), { method: "POST", body, redirect: "manual" });
  const cookie = cookieOf(opened);
  const base = new URL(url).origin;
  const get = (path: string) => fetch(`${base}${path}`, { headers: { Cookie: cookie }, redirect: "manual" });
  const csrf = /name="csrf" value="([^"]+)"/.exec(await (await get("/admin/keys")).text())?.[1] ?? "";
  const post = (path: string, fields: Record<string, string> = {}) =>
    fetch(`${base}${path}`, {
      method: "POST",
      headers: { Cookie: cookie },
      body: new URLSearchParams({ csrf, ...fields }),
      redirect: "manual",
    });
  return { status: opened.status, get, post };
}

test("a sign-in link of the command line opens the settings page of a running serve, and its forms work", async () => {
  const program = await Program.withShop(LOCAL);
  const server = await program.serve();
  const { status, stdout, stderr } = await program.run(["admin", "link"]);
  expect({ status, stderr }).toEqual({
    status: 0,
    stderr: `Open this link in a browser within ten minutes. It works once, and opens the settings of ${DOMAIN}.\n`,
  });
  expect(stdout).toMatch(new RegExp(`^${server.url}/admin/sign-in\\?token=[\\w-]{43}\n$`));
  const { get, post } = await signIn(stdout.trim());
  expect((await fetch(stdout.trim())).status).toBe(200);
  expect((await signIn(stdout.trim())).status).toBe(401);

  await post("/admin/keys", { label: "Warehouse" });
  const key = /cad_pk_[0-9a-f]{48}/.exec(await (await get("/admin/keys")).text())?.[0] ?? "";
  const read = () => fetch(`${server.url}/api/v1/orders`, { headers: { Authorization: `Bearer ${key}` } });
  expect((await read()).status).toBe(200);
  const [listed] = await program.json<{ id: string; label: string }[]>(["key", "list"]);
  expect(listed?.label).toBe("Warehouse");
  await post(`/admin/keys/${listed?.id}/revoke`);
  expect((await read()).status).toBe(401);

  const receiver = new Receiver();
  expect((await post("/admin/webhooks", { url: receiver.url })).status).toBe(303);
  await post("/admin/webhooks/test", { topic: "order.failed" });
  expect((await receiver.gets(1))[0]?.topic).toBe("order.failed");
  await eventually(async () =>
    (await (await get("/admin/webhooks")).text()).includes("signed with the current secret."),
  );

  const file = await get("/assets/page.css");
  expect([file.status, (await file.text()).length > 10_000]).toEqual([200, true]);
  await server.stop();
});

test("admin sign-out ends sessions at once, and unused sign-in links stop working", async () => {
  const program = await Program.withShop();
  await program.serve();
  const { get } = await signIn((await program.json<{ url: string }>(["admin", "link"])).url);
  const { url: unused } = await program.json<{ url: string }>(["admin", "link"]);
  expect((await get("/admin/keys")).status).toBe(200);
  expect(await program.json(["admin", "sign-out"])).toEqual({ ended: 1 });
  expect((await get("/admin/keys")).status).toBe(401);
  expect((await signIn(unused)).status).toBe(401);
  expect(await program.run(["admin", "sign-out"])).toEqual({ status: 0, stdout: "", stderr: "Ended 0 sessions.\n" });
  await signIn((await program.json<{ url: string }>(["admin", "link"])).url);
  expect(await program.run(["admin", "sign-out"])).toEqual({ status: 0, stdout: "", stderr: "Ended 1 session.\n" });
});

test("a sign-in link begins with the public URL, else with the address of a running serve, else with the configured one", async () => {
  const program = await Program.withShop();
  const base = async (env: Record<string, string> = {}) => {
    const { url, expiresAt } = await program.json<{ url: string; expiresAt: string }>(["admin", "link"], { env });
    expect(Date.parse(expiresAt) - Date.now()).toBeWithin(9 * 60_000, 10 * 60_000 + 1);
    return new URL(url).origin;
  };
  expect(await base()).toBe("http://127.0.0.1:8080");
  expect(await base({ SDS_HOST: "::1", SDS_PORT: "81" })).toBe("http://[::1]:81");
  expect(await base({ SDS_HOST: "0.0.0.0" })).toBe("http://127.0.0.1:8080");
  const server = await program.serve();
  expect(await base({ SDS_PORT: "81" })).toBe(server.url);
  expect(await base({ SDS_PUBLIC_URL: "https://sds.example.com/" })).toBe("https://sds.example.com");
  await server.stop();
  expect(await base()).toBe("http://127.0.0.1:8080");
});

test("admin link refuses a wrong SDS_PUBLIC_URL, a missing shop, and several shops without --shop", async () => {
  const program = new Program();
  const noData = { status: 3, stdout: "", stderr: expect.stringContaining("sds: there is no data in ") };
  expect(await program.run(["admin", "link"])).toMatchObject(noData);
  await program.json(["shop", "add", DOMAIN]);
  for (const url of [
    "sds.example.com",
    "ftp://sds.example.com",
    "https://sds.example.com/below",
    "https://u@sds.example.com",
    "",
  ]) {
    const refused = await program.run(["admin", "link"], { env: { SDS_PUBLIC_URL: url } });
    expect({ url, status: refused.status, stdout: refused.stdout }).toEqual({ url, status: 2, stdout: "" });
    expect(refused.stderr).toStartWith("sds: SDS_PUBLIC_URL is ");
  }
  await program.json(["shop", "add", "beta.myshopify.com"]);
  expect(await program.run(["admin", "link"])).toMatchObject({ status: 2, stdout: "" });
  expect((await program.run(["admin", "link", "--shop", "beta.myshopify.com"])).stdout).toContain(
    "/admin/sign-in?token=",
  );
});
