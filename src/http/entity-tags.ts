/** Answers whose headers are remembered, in each of two generations. */
const MAX_REMEMBERED = 2_048;
/** Characters. A longer query is not remembered, and its answer is read again. */
const LONGEST_LINK = 1_024;

type Headers = Record<string, string>;

/**
 * Entity tags (RFC 9110, section 8.8.3): an answer stays the same as long as nothing of the shop changes. So a client
 * that has it is answered without a read.
 */
export interface EntityTags {
  /**
   * The tags of an address, by the number of the shop's last change. Weak, because an answer can be compressed in
   * several ways.
   */
  tagsOf(shopId: number, url: string): (changeCount: number) => string;
  /**
   * The headers that the answer with this tag had, if the client has that answer.
   * @returns undefined if it does not have it, or this program does not remember the headers
   */
  rememberedFor(request: Request, tag: string): Headers | undefined;
  remember(tag: string, headers: Headers): void;
}

/**
 * @param version of the program, which decides how rows are rendered
 * @param epoch of the database: its counts begin anew with a restore
 */
export function createEntityTags(version: string, epoch: Uint8Array): EntityTags {
  const seed = Bun.hash(epoch) as bigint;
  // When the newer one is full, it becomes the older one. Removing the oldest entry of a map takes 10 µs each time.
  let newer = new Map<string, Headers>();
  let older = new Map<string, Headers>();
  return {
    tagsOf(shopId, url) {
      const name = Bun.hash(`${shopId} ${targetOf(url)}`, seed).toString(36);
      return (changeCount) => `W/"${version}-${changeCount}-${name}"`;
    },
    rememberedFor(request, tag) {
      return hasTag(request, tag) ? (newer.get(tag) ?? older.get(tag)) : undefined;
    },
    remember(tag, headers) {
      if ((headers["Link"]?.length ?? 0) > LONGEST_LINK || newer.has(tag)) return;
      if (newer.size >= MAX_REMEMBERED) [older, newer] = [newer, new Map()];
      newer.set(tag, headers);
    },
  };
}

/** Whether a client has the answer with a tag: it names the tag, or says `*`. */
export function hasTag(request: Request, tag: string): boolean {
  const header = request.headers.get("if-none-match");
  if (header === null) return false;
  if (header.trim() === "*") return true;
  const names: string[] = header.match(/"[^"]*"/g) ?? [];
  return names.includes(tag.replace(/^W\//, ""));
}

/** Path and query of a URL. */
function targetOf(url: string): string {
  return url.startsWith("/") ? url : url.slice(url.indexOf("/", url.indexOf("://") + 3));
}
