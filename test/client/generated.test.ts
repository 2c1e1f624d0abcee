import { expect, test } from "bun:test";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { generatedFiles } from "../../scripts/client/generated.ts";
import { interfaceText } from "../../scripts/client/type-text.ts";
import type * as client from "../../src/client/resources.ts";
import type { WebhookData } from "../../src/client/webhook-event.ts";
import type { EventData } from "../../src/domain/events/event-schemas.ts";
import type { FieldValues } from "../../src/domain/fields/value.ts";
import type * as server from "../../src/domain/resources.ts";

/** True only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

test("the client's types match the server's schemas", async () => {
  const same: [
    Same<client.Subscription, server.Subscription>,
    Same<client.SubscriptionWithFields["customFields"], FieldValues>,
    Same<client.Customer, server.Customer>,
    Same<client.Order, server.Order>,
    Same<client.LineItem, server.LineItem>,
    { [T in keyof EventData]: Same<WebhookData[T], EventData[T]> }[keyof EventData],
    Same<keyof WebhookData, keyof EventData>,
  ] = [true, true, true, true, true, true, true];
  expect(same).not.toContain(false as never);
});

test("the files that are written from schemas are up to date: run `bun scripts/build.ts --client-types`", async () => {
  for (const [name, text] of generatedFiles()) {
    const file = await Bun.file(join(import.meta.dir, "../../src/client", name)).text();
    expect({ name, text: file }).toEqual({ name, text });
  }
});

test("a type has the schema's descriptions, wrapped, its optional fields and its open fields", () => {
  const Part = Type.Object({ n: Type.Integer() });
  const schema = Type.Object(
    {
      id: Type.String({ description: "Short." }),
      note: Type.Optional(Type.Union([Type.String(), Type.Null()], { description: "long ".repeat(30).trim() })),
      kind: Type.Union([Type.Literal("a"), Type.Literal("b")]),
      parts: Type.Array(Part),
    },
    { description: "A thing.", additionalProperties: Type.Unknown() },
  );
  const Values = Type.Unsafe({ type: "object", additionalProperties: Type.Union([Type.String(), Type.Number()]) });
  expect(interfaceText("Wide", Type.Object({ values: Values }), new Map(), "Thing")).toBe(
    "export interface Wide extends Thing {\n  values: Record<string, string | number>;\n}\n",
  );
  expect(interfaceText("Thing", schema, new Map([[Part, "Part"]]))).toBe(`/** A thing. */
export interface Thing {
  /** Short. */
  id: string;
  /**
   * ${"long ".repeat(23).trim()}
   * ${"long ".repeat(7).trim()}
   */
  note?: string | null;
  kind: "a" | "b";
  parts: Part[];
  [field: string]: unknown;
}
`);
});
