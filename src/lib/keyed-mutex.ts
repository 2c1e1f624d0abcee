/** Does things of one name one after another, and things of different names at the same time. */
export class KeyedMutex {
  private readonly ends = new Map<string, Promise<void>>();

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.ends.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ends.set(name, promise);
    await before;
    try {
      return await work();
    } finally {
      resolve();
      if (this.ends.get(name) === promise) this.ends.delete(name);
    }
  }
}
