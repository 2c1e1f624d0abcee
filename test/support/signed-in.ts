import type { Plan } from "../../src/domain/shop.ts";
import { testApp } from "./app.ts";
import { visit } from "./visitor.ts";

/** A shop in a fresh app, and somebody who is signed in to its settings page. */
export async function signedIn(env: Record<string, string> = {}, plan: Plan = "pro") {
  const all = await testApp(env);
  const { shop, keyId } = await all.addShop("alpha.myshopify.com", plan);
  return { all, store: all.app.store, shop, keyId, ...(await visit(all, shop)) };
}

/** A form's answer: its status, and the address that it redirects to. A refusal has no address. */
export function led(answer: Response): [number, string | null] {
  return [answer.status, answer.headers.get("location")];
}
