/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { isoUtc } from "../../lib/time.ts";

/** The hidden field without which no form is taken. */
export function CsrfField({ csrf }: { csrf: string }) {
  return <input type="hidden" name="csrf" value={csrf} />;
}

/** A time in UTC, which the script turns into the viewer's zone; the exact one is its title. */
export function Time({ ms }: { ms: number }) {
  const iso = isoUtc(ms);
  const exact = `${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC`;
  return (
    <time dateTime={iso} title={exact}>
      {iso.slice(0, 10)} {iso.slice(11, 16)} UTC
    </time>
  );
}

/** A value with a button that copies it; without scripts it can be selected. */
export function Copyable({ id, value, name }: { id: string; value: string; name: string }) {
  return (
    <span class="copyable">
      <code id={id}>{value}</code>
      <button type="button" class="outline" data-copy={id} aria-label={`Copy ${name}`} hidden>
        Copy
      </button>
    </span>
  );
}

/** What is shown once: a new key or signing secret. */
export function NewSecret({ name, value }: { name: string; value: string }) {
  return (
    <>
      <Copyable id="new-secret" value={value} name={name} />
      <p>Copy it now and keep it in a safe place. It won't be shown again.</p>
    </>
  );
}

/** The message at a field; the field names it with aria-describedby. */
export function FieldError({ id, error }: { id: string; error: string | undefined }) {
  return error === undefined ? null : (
    <small id={id} class="field-error" role="alert">
      {error}
    </small>
  );
}

/** Marks a field as refused, and says which texts speak of it. */
export function described(error: string | undefined, errorId: string, ...helpIds: string[]) {
  const ids = [...(error === undefined ? [] : [errorId]), ...helpIds].join(" ");
  return { ...(error !== undefined && { "aria-invalid": "true" as const }), ...(ids !== "" && { "aria-describedby": ids }) };
}

/** The heading of the column of buttons and links. It stays in sight where the table scrolls. */
export const ACTION = "Action";

/** A table that scrolls by itself where the screen is narrow; what scrolls has to be reachable by keyboard too, hence the tabIndex. */
export function Table({ id, name, headings, children }: { id: string; name: string; headings: readonly string[]; children: ComponentChildren }) {
  return (
    <section class="overflow-auto" aria-label={name} tabIndex={0}>
      <table id={id}>
        <thead>
          <tr>
            {headings.map((heading) => (
              <th scope="col" class={heading === ACTION ? "action" : undefined}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

/** In forms that make something: each is taken once. */
export function OnceField() {
  return <input type="hidden" name="once" value={crypto.randomUUID()} />;
}

interface Confirmation {
  id: string;
  csrf: string;
  action: string;
  /** The words on the button that does it. */
  does: string;
  back: string;
  children: ComponentChildren;
}

/** Asks before something is done that can't be taken back. A page of its own, so that it works without scripts. */
export function Confirm({ id, csrf, action, does, back, children }: Confirmation) {
  return (
    <form id={id} method="post" action={action}>
      <CsrfField csrf={csrf} />
      <OnceField />
      {children}
      <div class="actions">
        <button type="submit" id="confirm" class="danger">
          {does}
        </button>
        <a id="cancel" href={back}>
          Cancel
        </a>
      </div>
    </form>
  );
}

/** Says what to do where there is nothing yet. */
export function Empty({ id, children }: { id: string; children: ComponentChildren }) {
  return (
    <p id={id} class="empty">
      {children}
    </p>
  );
}
