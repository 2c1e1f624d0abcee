/**
 * Remembers what a function without side effects returned, to save the work of the next calls. It forgets everything
 * once there are too many texts.
 * @param limit how many texts
 */
export function remembering<T>(limit: number, compute: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= limit) known.clear();
    const computed = compute(text);
    known.set(text, computed);
    return computed;
  };
}
