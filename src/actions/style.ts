import { CryptoHasher } from "bun";
import type { Actor } from "../domain/audit.ts";
import type { Shop } from "../domain/shop.ts";
import type { ScopedStylesheet } from "../domain/style/stylesheet.ts";
import type { Store } from "../store/port/store.ts";
import { checkAccess } from "./access.ts";
import { type ActorInShop, audited } from "./audit.ts";

/** Scopes a style. The parser is loaded at the first call, because most processes never need it. */
export async function scopeStyle(source: string): Promise<ScopedStylesheet> {
  const { scopeStylesheet } = await import("../domain/style/stylesheet.ts");
  return scopeStylesheet(source);
}

interface StyleRequest {
  shop: Shop;
  source: string;
  actor: Actor;
}

/** The size and warnings of a saved style, or the place and reason of a refusal. A refused style is not saved. */
type SavedStyle = Extract<ScopedStylesheet, { refused: unknown }> | { bytes: number; warnings: string[] };

/** Saves the style of the storefront widget. @throws SdsError `plan_required` for a merchant */
export async function saveStyle(
  store: Pick<Store, "audited">,
  { shop, source: written, actor }: StyleRequest,
  now: number,
): Promise<SavedStyle> {
  const warnings = checkAccess(shop, "widget style", actor);
  // Browsers post newlines as CRLF, but a style is stored with LF.
  const source = written.replaceAll("\r\n", "\n");
  const scoped = await scopeStyle(source);
  if ("refused" in scoped) return scoped;
  const bytes = Buffer.from(source);
  const hash = new CryptoHasher("sha256").update(bytes).digest("base64url");
  const { styles } = audited(store, { shop, actor }, now, "style.saved", { after: { bytes: bytes.length } });
  await styles.set(shop.id, { source, hash });
  return { bytes: bytes.length, warnings };
}

/** Removes the style. @returns false if there was none */
export function clearStyle(store: Pick<Store, "audited">, by: ActorInShop, now: number): Promise<boolean> {
  return audited(store, by, now, "style.removed").styles.clear(by.shop.id);
}

/** Says where and why a style is refused, in one line. */
export function styleRefusal({ refused: { line, column, reason } }: Extract<SavedStyle, { refused: unknown }>): string {
  return `line ${line}, column ${column}: ${reason}`;
}
