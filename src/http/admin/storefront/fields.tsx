/** @jsxImportSource preact */
import * as actions from "../../../actions/field.ts";
import { SdsError } from "../../../domain/error.ts";
import {
  addField,
  changeField,
  type FieldDefinition,
  fieldNamed,
  MAX_FIELDS,
  restoreField,
} from "../../../domain/fields/definition.ts";
import { hasAccess } from "../../../domain/shop.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler } from "../admin-request.ts";
import { FieldError, Form, fieldAttributes, Link } from "../components.tsx";
import { reasonOf } from "../form.ts";
import { EmptySection, SAMPLE_FIELD } from "../samples.tsx";
import {
  DefinitionInputs,
  definitionOf,
  FIELDS,
  KeyInput,
  readTypedField,
  TRAIL,
  type TypedField,
  typedFieldOf,
} from "./field-form.tsx";
import { ArchivedTable, FieldTable } from "./field-tables.tsx";

interface RefusedField {
  typed: TypedField;
  error: string;
}

interface RefusedLookUp {
  name: string;
  error: string;
}

export const showFields: Handler = (request, dependencies) => fieldsPage(request, dependencies);

export const createField: Handler = async (request, dependencies) => {
  const typed = readTypedField(request.form);
  const { key, label, ...rest } = typed;
  const change = (fields: readonly FieldDefinition[]) => addField(fields, { key, label, ...definitionOf(rest) });
  const refused = await changeFields(request, dependencies, key, change);
  if (refused !== undefined) return fieldsPage(request, dependencies, { typed, error: refused });
  return { to: FIELDS, notices: [{ text: `The field ${label} is added.` }] };
};

export const showField: Handler = (request, dependencies) => fieldPage(request, dependencies);

export const saveField: Handler = async (request, dependencies) => {
  const { id: key, form } = request;
  const typed = { ...readTypedField(form), key };
  const { label, key: _, ...rest } = typed;
  const change = (fields: readonly FieldDefinition[]) => {
    // The form of a field with values has no type, because such a field keeps its type.
    const type = form.get("type") ?? fieldNamed(fields, key).type;
    return changeField(fields, key, { label, ...definitionOf({ ...rest, type }) });
  };
  const refused = await changeFields(request, dependencies, key, change);
  if (refused !== undefined) return fieldPage(request, dependencies, { typed, error: refused });
  return { to: FIELDS, notices: [{ text: `The field ${label} is saved.` }] };
};

export const archive: Handler = async (request, { store, now }) => {
  const fields = await actions.archiveField(store, request, request.id, now());
  const text = `The field ${fieldNamed(fields, request.id).label} is archived. Its values are kept, but not shown.`;
  return { to: FIELDS, notices: [{ text }] };
};

export const restore: Handler = async (request, dependencies) => {
  const error = await changeFields(request, dependencies, request.id, (all) => restoreField(all, request.id));
  if (error !== undefined) throw new SdsError("invalid", error);
  const { label } = fieldNamed(await dependencies.store.fields.list(request.shop.id), request.id);
  return { to: FIELDS, notices: [{ text: `The field ${label} is back, with its values.` }] };
};

/** Finds a subscription by the typed id or gid, and redirects to the page of its values. */
export const lookUp: Handler = async (request, dependencies) => {
  const name = (request.form.get("subscription") ?? "").trim();
  try {
    const { subscription } = await actions.findFields(dependencies.store, request.shop, name);
    return { to: `${FIELDS}/values/${subscription.id}` };
  } catch (thrown) {
    const error = reasonOf(thrown, "invalid", "not_found");
    return fieldsPage(request, dependencies, undefined, { name, error });
  }
};

/** Changes the definitions. @returns why the change is refused */
async function changeFields(
  { shop, actor }: AdminRequest,
  { store, now }: AdminDependencies,
  subject: string,
  change: (fields: readonly FieldDefinition[]) => FieldDefinition[],
): Promise<string | undefined> {
  try {
    await actions.changeFields(store, { shop, change, subject, actor }, now());
    return undefined;
  } catch (thrown) {
    return reasonOf(thrown, "invalid", "conflict");
  }
}

/**
 * Makes the page of custom fields, which has two forms. At most one form is refused, because a request posts only one.
 */
async function fieldsPage(
  request: AdminRequest,
  { store }: AdminDependencies,
  refused?: RefusedField,
  refusedLookUp?: RefusedLookUp,
): Promise<AdminPage> {
  const fields = await store.fields.list(request.shop.id);
  const shown = fields.filter(({ archivedAt }) => archivedAt === null);
  const archived = fields.filter(({ archivedAt }) => archivedAt !== null);
  const isFull = shown.length >= MAX_FIELDS;
  const content = (
    <>
      <p>
        A custom field keeps your own data beside each subscription. You set values on this page, or your billing system
        does. Other systems read them with the API.
      </p>
      {shown.length === 0 ? (
        <EmptySection id="no-fields" sample={SAMPLE_FIELD}>
          There is no field yet. Add one below.
        </EmptySection>
      ) : (
        <FieldTable fields={shown} />
      )}
      {shown.length === 0 ? null : <LookUpForm refused={refusedLookUp} />}
      <Form id="add-field" action={FIELDS} aria-labelledby="add-field-heading">
        <h2 id="add-field-heading">Add a field</h2>
        <fieldset disabled={isFull || !hasAccess(request.shop.plan)} {...describedBy(refused)}>
          {isFull ? <p>A shop can have {MAX_FIELDS} fields. Archive one to add another.</p> : null}
          <FieldError id="field-error" error={refused?.error} />
          <KeyInput typed={refused?.typed.key} />
          <DefinitionInputs typed={refused?.typed} />
          <button type="submit" id="save-field">
            Add the field
          </button>
        </fieldset>
      </Form>
      {archived.length === 0 ? null : <ArchivedTable request={request} fields={archived} />}
    </>
  );
  const status = refused === undefined && refusedLookUp === undefined ? 200 : 422;
  return { title: "Custom fields", tab: FIELDS, status, content };
}

async function fieldPage(
  { shop, id }: AdminRequest,
  { store }: AdminDependencies,
  refused?: RefusedField,
): Promise<AdminPage> {
  const field = fieldNamed(await store.fields.list(shop.id), id);
  const { key, hasValues } = field;
  const content = (
    <Form id="edit-field" action={`${FIELDS}/edit/${key}`}>
      <p>
        Key: <code>{key}</code>. A key never changes.
      </p>
      <fieldset disabled={!hasAccess(shop.plan)} {...describedBy(refused)}>
        <FieldError id="field-error" error={refused?.error} />
        <DefinitionInputs typed={refused?.typed ?? typedFieldOf(field)} field={{ hasValues }} />
        <div class="actions">
          <button type="submit" id="save-field">
            Save
          </button>
          <Link id="cancel" to={FIELDS}>
            Cancel
          </Link>
        </div>
      </fieldset>
    </Form>
  );
  const status = refused === undefined ? 200 : 422;
  return { title: `Edit ${field.label}`, tab: FIELDS, trail: TRAIL, status, content };
}

function LookUpForm({ refused }: { refused: RefusedLookUp | undefined }) {
  return (
    <Form id="look-up" action={`${FIELDS}/values`} aria-labelledby="look-up-heading">
      <h2 id="look-up-heading">Values of one subscription</h2>
      <label for="subscription">Subscription</label>
      <input
        id="subscription"
        name="subscription"
        value={refused?.name ?? ""}
        required
        autocomplete="off"
        spellcheck={false}
        {...fieldAttributes(refused?.error, "subscription-error", "subscription-help")}
      />
      <FieldError id="subscription-error" error={refused?.error} />
      <small id="subscription-help">
        Its number in Shopify, its gid (<code>gid://shopify/SubscriptionContract/…</code>), or its id in the API.
      </small>
      <button type="submit" id="find" class="secondary">
        Find
      </button>
    </Form>
  );
}

/** Links the whole form to the reason of the refusal, because the reason is not about a single input. */
function describedBy(refused: RefusedField | undefined) {
  return refused === undefined ? {} : { "aria-describedby": "field-error" };
}
