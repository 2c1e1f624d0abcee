import { isDomain } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { ConnectionStore, WarningKind } from "../../store/port/connections.ts";
import { failureFields } from "../../store/port/store-error.ts";
import { API_VERSION, type ShopAddress } from "./address.ts";
import type { DataLevel } from "./platform-error.ts";

/** Warnings about connections that work. A warning is stored, and logged when it begins and then once a day. */
export interface ConnectionWarnings {
  /** Notes a warning, or that the warning ends. Never rejects. @param text null if the warning ends */
  note(shop: ShopAddress, kind: WarningKind, text: string | null): Promise<void>;
  /** Notes that the app has no approval for protected customer data of a level. Never rejects. */
  noteMissingLevel(shop: ShopAddress, level: DataLevel): Promise<void>;
  /** Notes the shop's domain at the platform. If we use the same domain, ends warnings about other domains. */
  noteDomain(shop: ShopAddress, domain: string): Promise<void>;
  /** Notes the version that the platform names in a header; null if the header is missing. Never rejects. */
  noteVersion(shop: ShopAddress, source: "answers" | "webhooks", version: string | null): Promise<void>;
}

interface Dependencies {
  connections: Pick<ConnectionStore, "warn" | "endWarning" | "warnings">;
  now: () => number;
  log: Log;
}

/** The warnings of a shop, as this process knows them. */
interface KnownWarnings {
  loadedAt: number;
  texts: Map<WarningKind, string>;
  /** Warnings that this process has stored since `loadedAt`. */
  noted: Set<WarningKind>;
}

/** After this time, the warnings of a shop are read again, because another process may store or end a warning. */
const KNOWN_FOR_MS = 3_600_000;

/**
 * How long a warning about an unexpected API version stays after the last answer or webhook with that version. While
 * the platform upgrades its servers one after another, the versions of its answers alternate. If the warning ended at
 * once, each alternation would be stored and logged.
 */
const VERSION_ENDS_AFTER_MS = 3_600_000;

export function createConnectionWarnings({ connections, now, log }: Dependencies): ConnectionWarnings {
  const byShop = new Map<number, KnownWarnings>();
  /** For each shop and source: when an unexpected version was last seen. */
  const otherVersionAt = new Map<string, number>();

  async function knownOf({ id }: ShopAddress): Promise<KnownWarnings> {
    const before = byShop.get(id);
    if (before !== undefined && Math.abs(now() - before.loadedAt) < KNOWN_FOR_MS) return before;
    const warnings = await connections.warnings(id);
    const texts = new Map(warnings.map(({ kind, text }) => [kind, text]));
    const known: KnownWarnings = { loadedAt: now(), texts, noted: new Set() };
    byShop.set(id, known);
    return known;
  }

  async function store(shop: ShopAddress, kind: WarningKind, text: string | null): Promise<void> {
    const { texts, noted } = await knownOf(shop);
    if (text === null) {
      if (!texts.delete(kind)) return;
      noted.delete(kind);
      await connections.endWarning(shop.id, kind);
      return;
    }
    if (noted.has(kind) && texts.get(kind) === text) return;
    noted.add(kind);
    texts.set(kind, text);
    if (await connections.warn(shop.id, kind, text, now())) log.warn(text, { shop: shop.domain });
  }

  async function note(shop: ShopAddress, kind: WarningKind, text: string | null): Promise<void> {
    try {
      await store(shop, kind, text);
    } catch (thrown) {
      log.error("cannot store a warning about a shop's connection", { shop: shop.domain, ...failureFields(thrown) });
    }
  }

  async function endOtherDomains(shop: ShopAddress): Promise<void> {
    const known = await knownOf(shop).catch(() => undefined);
    for (const kind of known?.texts.keys().toArray() ?? [])
      if (kind.startsWith("domain ")) await note(shop, kind, null);
  }

  return {
    note,
    noteMissingLevel: (shop, level) => note(shop, `level ${level}`, LEVEL_TEXTS[level]),
    async noteDomain(shop, domain) {
      if (domain === shop.domain) return endOtherDomains(shop);
      if (!isDomain(domain)) return;
      const text = `the shop has the domain ${domain} now: run \`sds shop rename ${shop.domain} ${domain}\``;
      await note(shop, `domain ${domain}`, text);
    },
    async noteVersion(shop, source, version) {
      // A version is a quarter such as `2026-07`, or `unstable`.
      if (version === null || !/^[a-z0-9-]{1,20}$/.test(version)) return;
      const key = `${shop.id} ${source}`;
      if (version !== API_VERSION) {
        otherVersionAt.set(key, now());
        await note(shop, source, VERSION_TEXTS[source](version));
      } else if (Math.abs(now() - (otherVersionAt.get(key) ?? 0)) >= VERSION_ENDS_AFTER_MS) {
        await note(shop, source, null);
      }
    },
  };
}

const ASK = "ask for it in the Partner Dashboard, at the app's API access requests";
export const LEVEL_TEXTS: Record<DataLevel, string> = {
  1: `the app has no access to protected customer data, level 1, so the platform refuses customers or orders; ${ASK}`,
  2: `the app has no access to protected customer data, level 2, so names and e-mail addresses are missing; ${ASK}`,
};

const VERSION_TEXTS = {
  answers: (version: string) =>
    `the platform answers with its API version ${version}, but this sds was made for ${API_VERSION}: update sds`,
  webhooks: (version: string) =>
    `the platform sends webhooks of its API version ${version}, but this sds was made for ${API_VERSION}: ` +
    `set api_version to ${API_VERSION} in shopify.app.toml and deploy it, or update sds`,
};
