/** @jsxImportSource preact */
import { FIELD_TYPES, type FieldDefinition, MAX_TEXT } from "../../../domain/fields/definition.ts";

export const FIELDS = "/fields";
export const TRAIL = { to: FIELDS, name: "Custom fields" };

/** Names of the field types on the settings page. */
export const TYPE_NAMES: Record<FieldDefinition["type"], string> = {
  text: "Text",
  number: "Number",
  boolean: "Yes or no",
  date: "Date",
  choice: "Choice",
};

/** The fields of a form, as they were typed. */
export interface TypedField {
  key: string;
  label: string;
  type: string;
  /** One option on each line. */
  options: string;
  subscriberEditable: boolean;
  /** `yes`, `no`, or empty for the type's default. */
  personal: string;
}

export function readTypedField(form: URLSearchParams): TypedField {
  const textOf = (name: string) => form.get(name) ?? "";
  return {
    key: textOf("key"),
    label: textOf("label").trim(),
    type: textOf("type"),
    options: textOf("options"),
    subscriberEditable: form.has("subscriberEditable"),
    personal: textOf("personal"),
  };
}

/** Turns the typed texts into parts of a definition, without a check. The domain checks the definition. */
export function definitionOf({ type, options, subscriberEditable, personal }: Omit<TypedField, "key" | "label">) {
  return {
    // The type can be any text here: the domain refuses unknown types.
    type: type as FieldDefinition["type"],
    options: options.split(/\r?\n/).flatMap((line) => line.trim() || []),
    subscriberEditable,
    ...(personal !== "" && { personal: personal === "yes" }),
  };
}

export function typedFieldOf({ key, label, type, options, subscriberEditable, personal }: FieldDefinition): TypedField {
  return { key, label, type, options: options.join("\n"), subscriberEditable, personal: personal ? "yes" : "no" };
}

export function KeyInput({ typed = "" }: { typed: string | undefined }) {
  return (
    <>
      <label for="key">Key</label>
      <input
        id="key"
        name="key"
        value={typed}
        maxLength={40}
        required
        autocomplete="off"
        spellcheck={false}
        aria-describedby="key-help"
      />
      <small id="key-help">
        The name of the field in the API, for instance <code>gift_note</code>. Use lower-case letters, digits and _. The
        key never changes.
      </small>
    </>
  );
}

interface DefinitionProps {
  typed: TypedField | undefined;
  /** The field that is edited; undefined for a new field. */
  field?: Pick<FieldDefinition, "hasValues">;
}

/** The inputs of a definition, except the key. */
export function DefinitionInputs({ typed, field }: DefinitionProps) {
  const personal = typed?.personal ?? "";
  return (
    <>
      <label for="label">Label</label>
      <input id="label" name="label" value={typed?.label ?? ""} maxLength={2 * MAX_TEXT} required autocomplete="off" />
      <label for="type">Type</label>
      <select id="type" name="type" disabled={field?.hasValues === true} aria-describedby="type-help">
        {FIELD_TYPES.map((type) => (
          <option value={type} selected={type === typed?.type}>
            {TYPE_NAMES[type]}
          </option>
        ))}
      </select>
      <small id="type-help">
        {field?.hasValues === true
          ? "The field has values, so it keeps its type."
          : "A field with values keeps its type."}
      </small>
      <label for="options">Options</label>
      <textarea id="options" name="options" rows={4} aria-describedby="options-help">
        {`\n${typed?.options ?? ""}`}
      </textarea>
      <small id="options-help">Only for a choice: one option on each line, at most 50.</small>
      <div class="choice">
        <input
          type="checkbox"
          id="subscriber-editable"
          name="subscriberEditable"
          checked={typed?.subscriberEditable === true}
          aria-describedby="subscriber-editable-help"
        />
        <label for="subscriber-editable">Subscribers may edit the value</label>
        <small id="subscriber-editable-help">In the portal. You can always edit it.</small>
      </div>
      <label for="personal">Personal data</label>
      <select id="personal" name="personal" aria-describedby="personal-help">
        {field === undefined ? (
          <option value="" selected={personal === ""}>
            Yes for a text, no for other types
          </option>
        ) : null}
        <option value="yes" selected={personal === "yes"}>
          Yes
        </option>
        <option value="no" selected={personal === "no"}>
          No
        </option>
      </select>
      <small id="personal-help">When a customer's data is removed, personal values are removed too.</small>
    </>
  );
}
