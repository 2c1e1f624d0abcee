import { expect, test } from "bun:test";
import { Places } from "../../src/delivery/places.ts";

/** Has each of some shops answer once, so that they are known. */
function knownTo(places: Places, ...shops: number[]): void {
  for (const shop of shops) places.take(shop)(true);
}

function shared(places: Places, due: number[]): Record<number, number> {
  return Object.fromEntries(places.share(due));
}

test("a shop has its places and no more", () => {
  const places = new Places(10, 4);
  knownTo(places, 1);
  expect(shared(places, [1])).toEqual({ 1: 4 });
  places.take(1);
  places.take(1);
  expect(shared(places, [1])).toEqual({ 1: 2 });
});

test("all shops have no more than all places", () => {
  const places = new Places(5, 4);
  knownTo(places, 1, 2, 3);
  expect(shared(places, [1, 2, 3])).toEqual({ 1: 2, 2: 2, 3: 1 });
});

test("shops are served in turn: the next round begins behind the shop served last", () => {
  const places = new Places(2, 1);
  knownTo(places, 1, 2, 3);
  expect([shared(places, [1, 2, 3]), shared(places, [1, 2, 3]), shared(places, [1, 2, 3])]).toEqual([
    { 1: 1, 2: 1 },
    { 3: 1, 1: 1 },
    { 2: 1, 3: 1 },
  ]);
});

test("an endpoint that is not known to answer has one place until it does", () => {
  const places = new Places(10, 4);
  expect(shared(places, [1])).toEqual({ 1: 1 });
  const giveBack = places.take(1);
  expect(shared(places, [1])).toEqual({});
  giveBack(true);
  expect(shared(places, [1])).toEqual({ 1: 4 });
  places.take(1)(false);
  expect(shared(places, [1])).toEqual({ 1: 1 });
});

test("however many endpoints hang, half of the places are for the others", () => {
  const places = new Places(8, 4);
  const hanging = Array.from({ length: 300 }, (_, n) => n + 2);
  for (const [shop, share] of places.share(hanging)) for (let n = 0; n < share; n += 1) places.take(shop);
  expect(places.free).toBe(4);
  expect(shared(places, hanging)).toEqual({});
  const healthy = new Places(8, 4);
  knownTo(healthy, 1);
  for (const [shop, share] of healthy.share(hanging)) for (let n = 0; n < share; n += 1) healthy.take(shop);
  expect(shared(healthy, [1, ...hanging])).toEqual({ 1: 4 });
});

test("whatever happens, places come back", () => {
  const places = new Places(6, 3);
  let state = 1;
  const random = (n: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % n;
  };
  const held: ((answered: boolean) => void)[] = [];
  for (let step = 0; step < 2_000; step += 1) {
    for (const [shop, share] of places.share([1, 2, 3, 4, 5])) for (let n = 0; n < share; n += 1) held.push(places.take(shop));
    expect(places.free).toBeGreaterThanOrEqual(0);
    for (let n = random(held.length + 1); n > 0; n -= 1) held.splice(random(held.length), 1)[0]?.(random(3) > 0);
  }
  for (const giveBack of held) giveBack(true);
  expect(places.free).toBe(6);
});
