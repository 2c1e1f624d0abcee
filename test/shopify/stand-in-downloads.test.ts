import { expect, test } from "bun:test";
import { runCommand } from "../support/platform/control.ts";
import { DOMAIN, started } from "./stand-in-started.ts";

const URLS = `{ currentBulkOperation { status url } }`;

/** A stand-in with one result, and its text. */
async function result() {
  const all = await started();
  all.shop.seed({ contracts: 40 });
  all.shop.bulk.run("{ orders { edges { node { id name } } } }", true);
  await all.shop.finishBulkOperations();
  const operation = async () => {
    const { data } = await all.query(URLS);
    return (data as { currentBulkOperation: { status: string; url: string | null } }).currentBulkOperation;
  };
  const url = (await operation()).url ?? "";
  const text = await (await fetch(url)).text();
  return { ...all, operation, url, text, files: all.standIn.files };
}

test("a result is on another host, and needs no token", async () => {
  const { standIn, url, text } = await result();
  expect(new URL(url).host).not.toBe(new URL(standIn.address).host);
  expect(text.trimEnd().split("\n")).toHaveLength(40);
  expect((await fetch(url.replace(/signature=.*/, "signature=x"))).status).toBe(403);
  expect((await fetch(url.replace("/bulk/", "/bulk/x"))).status).toBe(404);
  expect(standIn.invalid).toEqual([]);
  await fetch(url, { headers: { "X-Shopify-Access-Token": "shpat_1" } });
  expect(standIn.invalid).toEqual(["an access token was sent to the host of the files"]);
});

test("a download goes on from a byte", async () => {
  const { url, text, files } = await result();
  const part = async (range: string) => {
    const response = await fetch(url, { headers: { Range: range } });
    return [response.status, response.headers.get("content-range"), await response.text()];
  };
  const size = text.length;
  expect(await part("bytes=10-")).toEqual([206, `bytes 10-${size - 1}/${size}`, text.slice(10)]);
  expect(await part("bytes=10-19")).toEqual([206, `bytes 10-19/${size}`, text.slice(10, 20)]);
  expect(await part(`bytes=${size}-`)).toEqual([416, `bytes */${size}`, ""]);
  files.behaviour.ignoresRanges = true;
  expect(await part("bytes=10-")).toEqual([200, null, text]);
});

test("a download can be cut, be slow, and be gone", async () => {
  const { clock, shop, url, text, files, operation } = await result();
  files.behaviour.cuts = { downloads: 1, afterBytes: 100 };
  await expect(fetch(url).then((response) => response.text())).rejects.toThrow();
  expect(files.downloads.at(-1)).toEqual({ range: null, bytes: 100 });
  expect(await (await fetch(url)).text()).toBe(text);
  files.behaviour.bytesPerSecond = text.length * 10;
  const begun = performance.now();
  expect(await (await fetch(url)).text()).toBe(text);
  expect(performance.now() - begun).toBeGreaterThan(50);
  files.behaviour.status = 403;
  expect((await fetch(url)).status).toBe(403);
  files.behaviour.status = null;
  clock.ms += 7 * 86_400_000;
  expect(await operation()).toEqual({ status: "EXPIRED", url: null });
  clock.ms -= 86_400_000;
  expect((await operation()).status).toBe("COMPLETED");
  shop.expireBulkOperations();
  expect(await operation()).toEqual({ status: "EXPIRED", url: null });
  expect((await fetch(url)).status).toBe(404);
});

test("another process can control operations and downloads", async () => {
  const { standIn, shop, operation } = await result();
  const run = (what: string, given: Record<string, unknown> = {}) =>
    runCommand(standIn, { do: what, shop: DOMAIN, with: given });
  run("setBulk", { bulk: { refuses: ["Order"], delayMs: null } });
  run("setDownloads", { status: 404 });
  expect([shop.bulk.behaviour.refuses, standIn.files.behaviour.status]).toEqual([["Order"], 404]);
  shop.bulk.run("{ customers { edges { node { id } } } }", false);
  await run("finishBulkOperations");
  expect((await operation()).status).toBe("COMPLETED");
  run("expireBulkOperations");
  expect((await operation()).status).toBe("EXPIRED");
});
