import { expect, test } from "bun:test";
import { sampleEvent } from "../../../src/domain/events/sample.ts";

test("the sample of a recovered order counts the failed attempt before it", () => {
  expect(sampleEvent("order.charged").data["attempt_count"]).toBe(1);
  expect(sampleEvent("order.recovered").data["attempt_count"]).toBe(2);
});
