/** Forms that are remembered; beyond that, the oldest are forgotten. */
const REMEMBERED = 10_000;

/** Forms that make something, a key or a secret, are taken once each: a double click, or a page that is reloaded, must not make two. */
export class FormNonces {
  private readonly forms = new Set<string>();

  /** @returns whether this is the first time */
  take(session: string, form: string): boolean {
    const name = `${session} ${form.slice(0, 100)}`;
    if (this.forms.has(name)) return false;
    this.forms.add(name);
    for (const oldest of this.forms) {
      if (this.forms.size <= REMEMBERED) break;
      this.forms.delete(oldest);
    }
    return true;
  }
}
