/** @jsxImportSource preact */
import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import { DAY_MS, isoUtc, spanText } from "../../lib/time.ts";
import type { NewKey } from "./admin-request.ts";
import type { Visitor } from "./visitor.ts";

/** What links and forms need to know about the visitor. The layout provides it. */
export const VisitorContext = createContext<Pick<Visitor, "root" | "csrf" | "frame">>({
  root: "/admin",
  csrf: "",
  frame: null,
});

interface LinkProps {
  to: string;
  id?: string;
  class?: string;
  "aria-label"?: string;
  "aria-current"?: "page";
  children: ComponentChildren;
}

/** A link to another page of this site. @param to the path below the root */
export function Link({ to, ...attributes }: LinkProps) {
  return <a {...attributes} href={useAddress(to)} />;
}

/** Returns the address of a path below the root. */
function useAddress(path: string): string {
  return `${useContext(VisitorContext).root}${path}`;
}

interface FormProps {
  action: string;
  id?: string;
  class?: string;
  "aria-labelledby"?: string;
  children: ComponentChildren;
}

/** A form that is posted to a path below the root, with the token of the visitor's session. */
export function Form({ action, children, ...attributes }: FormProps) {
  return (
    <form {...attributes} method="post" action={useAddress(action)}>
      <input type="hidden" name="csrf" value={useContext(VisitorContext).csrf} />
      {children}
    </form>
  );
}

interface SearchFormProps {
  id: string;
  /** Tells screen readers what the form searches. */
  label: string;
  action: string;
  children: ComponentChildren;
}

/** A GET form. Its fields become the query of a path below the root. */
export function SearchForm({ id, label, action, children }: SearchFormProps) {
  return (
    <search aria-label={label}>
      <form id={id} class="filters" method="get" action={useAddress(action)}>
        {children}
      </form>
    </search>
  );
}

interface PreviewFrameProps {
  name: string;
  title: string;
  /** Path of the document that the frame shows first. */
  from: string;
}

/**
 * A frame whose document can run no script. In the platform's admin, the script of our page fetches the document,
 * because a frame's own request has no ID token.
 */
export function PreviewFrame({ name, title, from }: PreviewFrameProps) {
  const address = useAddress(from);
  const isFramed = useContext(VisitorContext).frame !== null;
  const source = isFramed ? { "data-address": address } : { src: address };
  return <iframe name={name} class="preview" sandbox="" title={title} {...source} />;
}

interface PreviewButtonProps {
  id: string;
  /** Name of the frame that shows the answer. */
  frame: string;
  /** Path to which the form is posted. */
  from: string;
  children: ComponentChildren;
}

/** A button that posts its form and shows the answer in a frame. */
export function PreviewButton({ id, frame, from, children }: PreviewButtonProps) {
  return (
    <button type="submit" id={id} class="secondary" formaction={useAddress(from)} formtarget={frame}>
      {children}
    </button>
  );
}

/** Renders a time in UTC. The script shows it in the viewer's time zone; the title has the exact time in UTC. */
export function Time({ ms }: { ms: number }) {
  const iso = isoUtc(ms);
  return (
    <time dateTime={iso} title={exactTime(ms)}>
      {iso.slice(0, 10)} {iso.slice(11, 16)} UTC
    </time>
  );
}

function exactTime(ms: number): string {
  const iso = isoUtc(ms);
  return `${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC`;
}

const SECOND_MS = 1_000;

/** Renders a time of the last 24 hours as an age, such as "3 min ago". `Time` renders other times. */
export function Age({ ms, now }: { ms: number; now: number }) {
  if (now - ms >= DAY_MS || ms > now) return <Time ms={ms} />;
  return (
    <time class="age" dateTime={isoUtc(ms)} title={exactTime(ms)}>
      {now - ms < SECOND_MS ? "just now" : `${spanText(now - ms)} ago`}
    </time>
  );
}

/** A button that copies the text of an element. Without scripts it is hidden. @param name what the button copies */
export function CopyButton({ of, name }: { of: string; name: string }) {
  return (
    <button type="button" class="outline small" data-copy={of} aria-label={`Copy ${name}`} hidden>
      Copy
    </button>
  );
}

/** Renders a value with a button that copies it. */
export function Copyable({ id, value, name }: { id: string; value: string; name: string }) {
  return (
    <span class="copyable">
      <code id={id}>{value}</code>
      <CopyButton of={id} name={name} />
    </span>
  );
}

/** Returns a command that reads a subscription. @param address base URL of the API */
export function readCommand({ value, address }: NewKey): string {
  return `curl -H "Authorization: Bearer ${value}" "${address}/api/v1/subscriptions?limit=1"`;
}

/** Shows a new API key with what its user needs, and the warning that the key is shown only once. */
export function NewKeyPart({ value, address }: NewKey) {
  return (
    <>
      <Copyable id="new-secret" value={value} name="the new key" />
      <p>Copy it now and keep it in a safe place. It won't be shown again.</p>
      <p>This command reads a subscription with it:</p>
      <Copyable id="new-key-command" value={readCommand({ value, address })} name="the command" />
      <p>Programs need the key and this address:</p>
      <Copyable id="api-address" value={`${address}/api/v1`} name="the address" />
      <p>
        <a href="/docs/quick-start">How to read all data with a program</a>
      </p>
    </>
  );
}

/** Shows the error of a field. The field refers to the error with aria-describedby. */
export function FieldError({ id, error }: { id: string; error: string | undefined }) {
  return error === undefined ? null : (
    <small id={id} class="field-error" role="alert">
      {error}
    </small>
  );
}

/** Returns attributes that mark a field as refused and link the field to its error and help. */
export function fieldAttributes(error: string | undefined, errorId: string, ...helpIds: string[]) {
  const ids = [...(error === undefined ? [] : [errorId]), ...helpIds].join(" ");
  return {
    ...(error !== undefined && { "aria-invalid": "true" as const }),
    ...(ids !== "" && { "aria-describedby": ids }),
  };
}

/** Heading of the column with buttons. */
export const ACTION = "Action";

interface LiveProps {
  /** Whether the part can still change. */
  poll: boolean;
  announce: string;
  /** The query with which the script fetches this part; by default the query of the page. */
  query?: string;
  children: ComponentChildren;
}

/** The part of a page that the script keeps current. */
export function Live({ poll, announce, query, children }: LiveProps) {
  return (
    <section
      id="live"
      data-poll={poll ? "on" : "off"}
      data-announce={announce}
      tabIndex={-1}
      {...(query !== undefined && { "data-query": query })}
    >
      {children}
      {poll ? (
        <noscript>
          <p>Reload the page to see what changed.</p>
        </noscript>
      ) : null}
    </section>
  );
}

/** A hidden field with a random value: the server accepts each value once. */
export function OnceField() {
  return <input type="hidden" name="once" value={crypto.randomUUID()} />;
}

interface Confirmation {
  id: string;
  action: string;
  button: string;
  back: string;
  /** Whether the action removes something. */
  isDanger?: boolean;
  children: ComponentChildren;
}

/** Asks for confirmation before an action. Works without scripts. */
export function Confirm({ id, action, button, back, isDanger = true, children }: Confirmation) {
  return (
    <Form id={id} action={action}>
      <OnceField />
      {children}
      <div class="actions">
        <button type="submit" id="confirm" class={isDanger ? "danger" : undefined}>
          {button}
        </button>
        <Link id="cancel" to={back}>
          Cancel
        </Link>
      </div>
    </Form>
  );
}

/** A fact: its name, its value, and the id of the value's element. */
export type Fact = readonly [name: string, value: ComponentChildren, valueId?: string];

export function Facts({ id, facts }: { id: string; facts: readonly Fact[] }) {
  return (
    <dl class="facts" id={id}>
      {facts.map(([name, value, valueId]) => (
        <>
          <dt>{name}</dt>
          <dd id={valueId}>{value}</dd>
        </>
      ))}
    </dl>
  );
}

/** The text of an empty list. It says how to fill the list. */
export function Empty({ id, children }: { id: string; children: ComponentChildren }) {
  return (
    <p id={id} class="empty">
      {children}
    </p>
  );
}
