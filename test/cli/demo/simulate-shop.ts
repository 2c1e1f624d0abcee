import { spyOn } from "bun:test";
import { randomFractions } from "../../../scripts/random.ts";
import { ShopSimulation } from "../../../src/cli/demo/shop-simulation.ts";

interface SimulationOptions {
  customers: number;
  events: number;
  /** Epoch milliseconds. */
  startedAt: number;
}

/** Simulates a demo shop with fixed random numbers. One event comes each second. */
export function simulateShop({ customers, events, startedAt }: SimulationOptions) {
  const random = spyOn(Math, "random").mockImplementation(randomFractions(1));
  try {
    const shop = new ShopSimulation(startedAt);
    const past = shop.past(customers);
    const times = Array.from({ length: events }, (_, n) => startedAt + (n + 1) * 1_000);
    return { past, events: times.map((at) => ({ at, ...shop.next(at) })) };
  } finally {
    random.mockRestore();
  }
}
