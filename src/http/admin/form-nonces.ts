/** How many forms are remembered; beyond that, the oldest are forgotten. */
const REMEMBERED = 10_000;

export interface FormNonces {
  /** @returns whether this session posts this form for the first time */
  take(session: string, nonce: string): boolean;
}

/**
 * Remembers forms that create something: a double click, or a page that is reloaded, must not create a second key or
 * secret.
 */
export function createFormNonces(): FormNonces {
  const taken = new Set<string>();
  return {
    take(session, nonce) {
      const name = `${session} ${nonce.slice(0, 100)}`;
      if (taken.has(name)) return false;
      taken.add(name);
      for (const oldest of taken) {
        if (taken.size <= REMEMBERED) break;
        taken.delete(oldest);
      }
      return true;
    },
  };
}
