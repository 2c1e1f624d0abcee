import { describe, expect, test } from "bun:test";
import { createWrongKeyLog } from "../../../src/http/read/wrong-key-log.ts";
import { createLog } from "../../../src/lib/log.ts";
import { START, testApp } from "../../support/app.ts";

function openLog() {
  let now = 0;
  const lines: { message: string; address: string; wrongKeys: number }[] = [];
  const log = createLog("warn", { write: (text) => lines.push(JSON.parse(text)) }, () => START);
  const wrongKeys = createWrongKeyLog(() => now, log);
  const send = (times: number, address = "192.0.2.1") => {
    for (let sent = 0; sent < times; sent += 1) wrongKeys.count(address);
  };
  const wait = (ms: number) => {
    now += ms;
    wrongKeys.report();
  };
  const warned = () => lines.splice(0).map(({ address, wrongKeys: count }) => [address, count]);
  return { send, wait, warned };
}

describe("wrong keys from one address", () => {
  test("cause a warning at the third one, then once a minute with the count since the last warning", () => {
    const { send, wait, warned } = openLog();
    send(2);
    expect(warned()).toEqual([]);
    send(500);
    expect(warned()).toEqual([["192.0.2.1", 3]]);
    wait(59_999);
    expect(warned()).toEqual([]);
    wait(1);
    expect(warned()).toEqual([["192.0.2.1", 499]]);
    wait(60_000);
    expect(warned()).toEqual([]);
  });

  test("that are rare cause no warning", () => {
    const { send, wait, warned } = openLog();
    for (let minute = 0; minute < 10; minute += 1) {
      send(2);
      wait(60_000);
    }
    expect(warned()).toEqual([]);
  });

  test("are counted by address", () => {
    const { send, warned } = openLog();
    send(2, "192.0.2.1");
    send(2, "192.0.2.2");
    send(1, "192.0.2.1");
    expect(warned()).toEqual([["192.0.2.1", 3]]);
  });

  test("are counted for 1,000 addresses; the address that was quiet longest is forgotten first", () => {
    const { send, warned } = openLog();
    send(2, "192.0.2.1");
    send(2, "192.0.2.2");
    for (let n = 0; n < 999; n += 1) send(1, `10.0.${n >> 8}.${n & 255}`);
    send(1, "192.0.2.2");
    send(1, "192.0.2.1");
    expect(warned()).toEqual([["192.0.2.2", 3]]);
  });
});

test("three requests with a wrong key are in the log without the key; requests without a key are not", async () => {
  const { request, logged } = await testApp();
  const key = `cad_pk_${"5".repeat(48)}`;
  for (let sent = 0; sent < 3; sent += 1) await request("/api/v1/orders");
  expect(logged.filter((line) => line.includes("wrong API keys"))).toEqual([]);
  for (let sent = 0; sent < 3; sent += 1)
    await request("/api/v1/orders", { headers: { Authorization: `Bearer ${key}` } });
  const warned = logged.filter((line) => line.includes("wrong API keys"));
  expect(warned).toHaveLength(1);
  expect(JSON.parse(warned[0] ?? "")).toMatchObject({ level: "warn", wrongKeys: 3 });
  expect(logged.join("")).not.toContain("5555");
});

test("wrong keys behind a reverse proxy on this machine are counted by the client that the proxy names", async () => {
  const { app, logged } = await testApp();
  const address = await app.start();
  const send = async (forwarded: string) => {
    const headers = { Authorization: `Bearer cad_pk_${"5".repeat(48)}`, "X-Forwarded-For": forwarded };
    expect((await fetch(`${address}/api/v1/orders`, { headers })).status).toBe(401);
  };
  const warned = () => logged.filter((line) => line.includes("wrong API keys")).map((line) => JSON.parse(line).address);
  for (const client of ["192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2"]) await send(client);
  expect(warned()).toEqual([]);
  // A client can forge the first address, so the program uses only the last address.
  await send("192.0.2.9, 192.0.2.1");
  expect(warned()).toEqual(["192.0.2.1"]);
  for (const host of ["1", "2", "ffff"]) await send(`2001:db8::${host}`);
  expect(warned()).toEqual(["192.0.2.1", "2001:db8:0:0::/64"]);
});
