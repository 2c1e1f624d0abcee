/** Limits how many bytes are in memory at once, in total and for each owner, such as a shop. */
export interface ByteBudget {
  /**
   * Counts bytes until the result is disposed. Disposing twice is allowed.
   * @returns `exceeded` if the bytes would exceed the owner's limit or the total; then they are not counted
   */
  take(owner: number, bytes: number): Disposable | { exceeded: "own" | "total" };
}

interface Limits {
  maxBytes: number;
  maxBytesOfOwner: number;
}

export function createByteBudget({ maxBytes, maxBytesOfOwner }: Limits): ByteBudget {
  /** Counted bytes by owner. */
  const taken = new Map<number, number>();
  let total = 0;

  function add(owner: number, bytes: number): void {
    const left = (taken.get(owner) ?? 0) + bytes;
    total += bytes;
    if (left > 0) taken.set(owner, left);
    else taken.delete(owner);
  }

  return {
    take(owner, bytes) {
      if ((taken.get(owner) ?? 0) + bytes > maxBytesOfOwner) return { exceeded: "own" };
      if (total + bytes > maxBytes) return { exceeded: "total" };
      add(owner, bytes);
      let isTaken = true;
      return {
        [Symbol.dispose]() {
          if (isTaken) add(owner, -bytes);
          isTaken = false;
        },
      };
    },
  };
}
