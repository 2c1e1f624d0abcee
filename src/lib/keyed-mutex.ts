export interface KeyedMutex {
  /** Runs `work` after all earlier work of the same key. */
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Runs work of the same key one after another, and work of different keys at the same time. */
export function createKeyedMutex(): KeyedMutex {
  const lastByKey = new Map<string, Promise<void>>();
  return {
    async run(key, work) {
      const before = lastByKey.get(key);
      const { promise, resolve } = Promise.withResolvers<void>();
      lastByKey.set(key, promise);
      await before;
      try {
        return await work();
      } finally {
        resolve();
        if (lastByKey.get(key) === promise) lastByKey.delete(key);
      }
    },
  };
}
