export interface KeyedMutex {
  /** Runs `work` after all earlier work of these keys. Keys are taken in sorted order, so callers never deadlock. */
  run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T>;
}

/** Runs work of the same key one after another, and work of different keys at the same time. */
export function createKeyedMutex(): KeyedMutex {
  const lastByKey = new Map<string, Promise<void>>();

  /** Waits for the earlier work of a key. @returns a function that lets the next work begin */
  async function take(key: string): Promise<() => void> {
    const before = lastByKey.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    lastByKey.set(key, promise);
    await before;
    return () => {
      resolve();
      if (lastByKey.get(key) === promise) lastByKey.delete(key);
    };
  }

  return {
    async run(keys, work) {
      const releases: (() => void)[] = [];
      for (const key of [...new Set(keys)].toSorted()) releases.push(await take(key));
      try {
        return await work();
      } finally {
        for (const release of releases) release();
      }
    },
  };
}
