import { expect, test } from "bun:test";
import { createFormNonces } from "../../src/http/admin/form-nonces.ts";
import { createSignInLimiter } from "../../src/http/admin/sign-in-limiter.ts";

const LIMIT = 10_000;

test("of 10,001 addresses with wrong tokens only the one that was wrong longest ago is forgotten", () => {
  const limiter = createSignInLimiter(() => 0);
  for (const address of ["first", "second"]) for (let n = 0; n < 5; n += 1) limiter.count(address);
  for (let n = 2; n < LIMIT; n += 1) limiter.count(`other ${n}`);
  expect([limiter.waitSeconds("first"), limiter.waitSeconds("second")]).toEqual([60, 60]);
  limiter.count("one more");
  expect([limiter.waitSeconds("first"), limiter.waitSeconds("second")]).toEqual([undefined, 60]);
});

test("of 10,001 posted forms only the oldest is forgotten, and each session has its own forms", () => {
  const nonces = createFormNonces();
  for (let n = 0; n <= LIMIT; n += 1) expect(nonces.take("a", `form ${n}`)).toBe(true);
  expect([nonces.take("a", "form 1"), nonces.take("a", `form ${LIMIT}`)]).toEqual([false, false]);
  expect([nonces.take("a", "form 0"), nonces.take("b", `form ${LIMIT}`)]).toEqual([true, true]);
});
