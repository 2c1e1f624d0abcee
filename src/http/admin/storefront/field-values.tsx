/** @jsxImportSource preact */
import { noteInAudit } from "../../../actions/audit.ts";
import { type EditableFields, findFields, setFieldValues } from "../../../actions/field.ts";
import { numberOf } from "../../../domain/deliveries/subject.ts";
import type { FieldDefinition } from "../../../domain/fields/definition.ts";
import { type FieldValue, parseValueText } from "../../../domain/fields/value.ts";
import { hasAccess } from "../../../domain/shop.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler } from "../admin-request.ts";
import { Empty, FieldError, Form, fieldAttributes } from "../components.tsx";
import { reasonOf } from "../form.ts";
import { RowStatusBadge } from "../shop-data/row-table.tsx";
import { FIELDS, TRAIL } from "./field-form.tsx";

/** The text that was typed for one field, and the reason if the text is refused. */
interface TypedValue {
  text: string;
  error?: string;
}

/** A refused form: the typed values by key, and a reason that is about the whole form. */
interface RefusedValues {
  typed: ReadonlyMap<string, TypedValue>;
  error?: string;
}

/** Shows the values of a subscription. The audit list notes each view of values about a person. */
export const showValues: Handler = async (request, { store, now }) => {
  const found = await findFields(store, request.shop, request.id);
  const subject = found.subscription.shopifyId;
  if (found.fields.some(({ definition, value }) => definition.personal && value !== null))
    await noteInAudit(store, request, now(), "person.shown", { subject });
  return valuesPage(request, found);
};

/** Saves the values that were changed on the page, all or none. An empty text clears a value. */
export const saveValues: Handler = async (request, dependencies) => {
  const { shop, id } = request;
  const found = await findFields(dependencies.store, shop, id);
  const typed = readTypedValues(request.form, found);
  if ([...typed.values()].some(({ error }) => error !== undefined)) return valuesPage(request, found, { typed });
  const error = archivedRefusal(request.form, found) ?? (await save(request, dependencies, found, typed));
  if (error !== undefined) return valuesPage(request, found, { typed, error });
  return { to: `${FIELDS}/values/${id}`, notices: [{ text: typed.size === 0 ? "Nothing was changed." : "Saved." }] };
};

/** Returns the values that were changed in this form. Other values are not saved, so changes by somebody else stay. */
function readTypedValues(form: URLSearchParams, { fields }: EditableFields): Map<string, TypedValue> {
  const typed = new Map<string, TypedValue>();
  for (const { definition } of fields) {
    const text = changedText(form, definition.key);
    if (text !== undefined) typed.set(definition.key, { text, ...refusalOf(definition, text) });
  }
  return typed;
}

/** @returns the posted text of a field; undefined if it is the text that the page showed first */
function changedText(form: URLSearchParams, key: string): string | undefined {
  const text = form.get(`value.${key}`)?.replaceAll("\r\n", "\n");
  return text === undefined || digest(text) === form.get(`shown.${key}`) ? undefined : text;
}

/**
 * Refuses a form that changes the value of a field that was archived after the page was shown.
 * @returns undefined for any other form
 */
function archivedRefusal(form: URLSearchParams, { fields }: EditableFields): string | undefined {
  const keys = new Set(fields.map(({ definition }) => definition.key));
  const posted = [...form.keys()].flatMap((name) => (name.startsWith("value.") ? name.slice("value.".length) : []));
  const archived = posted.find((key) => !keys.has(key) && changedText(form, key) !== undefined);
  return archived === undefined ? undefined : `The field ${archived} is archived, so nothing was saved.`;
}

function refusalOf(definition: FieldDefinition, text: string): { error?: string } {
  try {
    if (text !== "") parseValueText(definition, text);
    return {};
  } catch (thrown) {
    return { error: reasonOf(thrown, "invalid") };
  }
}

/** Saves the values. @returns why saving was refused, for example after a change of the fields; undefined if saved */
async function save(
  { shop, actor }: AdminRequest,
  { store, recordWriter, now }: AdminDependencies,
  { subscription }: EditableFields,
  typed: ReadonlyMap<string, TypedValue>,
): Promise<string | undefined> {
  if (typed.size === 0) return undefined;
  const changes = [...typed].map(([key, { text }]) => ({ key, text: text === "" ? null : text }));
  const change = { shop, subscription: subscription.shopifyId, changes, actor };
  try {
    await setFieldValues(store, recordWriter, change, now());
    return undefined;
  } catch (thrown) {
    return reasonOf(thrown, "invalid", "not_found");
  }
}

function valuesPage(
  { shop, form }: AdminRequest,
  { subscription, fields }: EditableFields,
  refused?: RefusedValues,
): AdminPage {
  const { id, shopifyId, status } = subscription;
  const content = (
    <>
      <p>
        <RowStatusBadge status={status} /> · <code id="gid">{shopifyId}</code>
      </p>
      {fields.length === 0 ? (
        <Empty id="no-fields">This shop has no custom fields, or all of them are archived.</Empty>
      ) : (
        <Form id="values" action={`${FIELDS}/values/${id}`}>
          <FieldError id="values-error" error={refused?.error} />
          <fieldset disabled={!hasAccess(shop.plan)}>
            {fields.map(({ definition, value }) => {
              const stored = shownText(value);
              const shown = { text: stored, ...refused?.typed.get(definition.key) };
              const hash = form.get(`shown.${definition.key}`) ?? digest(stored);
              return <ValueInput definition={definition} hash={hash} shown={shown} />;
            })}
            <button type="submit" id="save-values">
              Save
            </button>
          </fieldset>
        </Form>
      )}
    </>
  );
  const title = `Values of subscription ${numberOf(shopifyId)}`;
  return { title, tab: FIELDS, trail: TRAIL, status: refused === undefined ? 200 : 422, content };
}

/** Returns the text that a browser posts for an unchanged value. */
function shownText(value: FieldValue | null): string {
  return value === null ? "" : String(value).replaceAll(/\r\n?/g, "\n");
}

/** Returns a digest. A form has the digest of each shown text, so that the server notices a changed text. */
function digest(text: string): string {
  return Bun.hash(text).toString(36);
}

interface InputProps {
  definition: FieldDefinition;
  /** Digest of the text that the page showed first. */
  hash: string;
  shown: TypedValue;
}

function ValueInput({ definition, hash, shown }: InputProps) {
  const { key, label, subscriberEditable } = definition;
  const name = `value.${key}`;
  const [id, errorId, helpId] = [`value-${key}`, `value-${key}-error`, `value-${key}-help`];
  const attributes = { id, name, ...fieldAttributes(shown.error, errorId, helpId) };
  return (
    <>
      <input type="hidden" name={`shown.${key}`} value={hash} />
      <label for={id}>{label}</label>
      <Input definition={definition} attributes={attributes} shown={shown} />
      <FieldError id={errorId} error={shown.error} />
      <small id={helpId}>
        <code>{key}</code>
        {subscriberEditable ? ", subscribers may edit it" : null}
      </small>
    </>
  );
}

interface TypedInputProps {
  definition: FieldDefinition;
  attributes: { id: string; name: string };
  shown: TypedValue;
}

function Input({ definition: { type, options }, attributes, shown: { text, error } }: TypedInputProps) {
  switch (type) {
    case "text":
      // Browsers drop a newline at the start of a textarea, so an extra newline is added.
      return <textarea {...attributes} rows={2}>{`\n${text}`}</textarea>;
    case "number":
      return <input {...attributes} type="text" inputMode="decimal" autocomplete="off" value={text} />;
    case "date":
      // A date input shows only dates, so a refused text gets a text input.
      return error === undefined ? (
        <input {...attributes} type="date" value={text} />
      ) : (
        <input {...attributes} type="text" value={text} />
      );
    case "boolean":
      return <Choices attributes={attributes} options={YES_OR_NO} text={text} />;
    case "choice":
      return <Choices attributes={attributes} options={options.map((option) => [option, option])} text={text} />;
  }
}

const YES_OR_NO = [
  ["true", "Yes"],
  ["false", "No"],
] as const;

interface ChoicesProps {
  attributes: { id: string; name: string };
  options: readonly (readonly [value: string, name: string])[];
  text: string;
}

/**
 * A select with an empty choice. A stored value that is no longer an option is offered too, so that saving keeps this
 * value.
 */
function Choices({ attributes, options, text }: ChoicesProps) {
  return (
    <select {...attributes}>
      <option value="" selected={text === ""}>
        None
      </option>
      {text === "" || options.some(([value]) => value === text) ? null : (
        <option value={text} selected>
          {text} (not an option)
        </option>
      )}
      {options.map(([value, name]) => (
        <option value={value} selected={value === text}>
          {name}
        </option>
      ))}
    </select>
  );
}
