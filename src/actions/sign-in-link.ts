import type { Shop } from "../domain/shop.ts";
import type { Store } from "../store/port/store.ts";
import { hashToken, LINK_LIFE_MS, newToken } from "./session.ts";

interface LinkDependencies {
  store: Pick<Store, "sessions">;
  random: (bytes: number) => Uint8Array;
}

interface LinkRequest {
  shop: Shop;
  /** The address of the program for people; null if it is not set. */
  publicUrl: string | null;
  /** The address on which the settings tell `serve` to listen. */
  configuredUrl: string;
}

/**
 * Makes a link to the shop's settings page that works once, within ten minutes. It begins with the public URL, else
 * with the address of a running `serve`, else with the configured one.
 * @returns the link, and when it expires, epoch milliseconds
 */
export async function createSignInLink(
  { store: { sessions }, random }: LinkDependencies,
  { shop, publicUrl, configuredUrl }: LinkRequest,
  now: number,
): Promise<{ url: string; expiresAt: number }> {
  const token = newToken(random);
  const expiresAt = now + LINK_LIFE_MS;
  const base = publicUrl ?? (await sessions.address()) ?? configuredUrl;
  await sessions.addLink(shop.id, hashToken(token), expiresAt);
  return { url: `${browsable(base)}/admin/sign-in?token=${token}`, expiresAt };
}

/**
 * A server on 0.0.0.0 or [::] listens on every address of the machine. A browser on the same machine has to use
 * loopback.
 */
function browsable(url: string): string {
  return url.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");
}
