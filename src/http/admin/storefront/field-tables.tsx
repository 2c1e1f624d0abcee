/** @jsxImportSource preact */
import type { FieldDefinition } from "../../../domain/fields/definition.ts";
import { hasAccess } from "../../../domain/shop.ts";
import type { AdminRequest } from "../admin-request.ts";
import { ACTION, Form, Link, Table } from "../components.tsx";
import { FIELDS, TYPE_NAMES } from "./field-form.tsx";

interface FieldRows {
  request: AdminRequest;
  fields: readonly FieldDefinition[];
}

/** Shows the fields that are not archived. */
export function FieldTable({ fields }: Pick<FieldRows, "fields">) {
  return (
    <Table id="fields" name="Custom fields" headings={["Label", "Key", "Type", "Edited by", "Personal", ACTION]}>
      {fields.map(({ key, label, type, options, subscriberEditable, personal }) => (
        <tr id={`field-${key}`}>
          <th scope="row" class="label">
            {label}
          </th>
          <td>
            <code>{key}</code>
          </td>
          <td class="options">
            {TYPE_NAMES[type]}
            {type === "choice" ? `: ${options.join(", ")}` : null}
          </td>
          <td>{subscriberEditable ? "you and subscribers" : "you"}</td>
          <td>{personal ? "yes" : "no"}</td>
          <td class="action">
            <div class="actions">
              <Link id={`edit-${key}`} to={`${FIELDS}/edit/${key}`} aria-label={`Edit ${label}`}>
                Edit
              </Link>
              <ActionForm action="archive" id={key} button="Archive" label={`Archive ${label}`} />
            </div>
          </td>
        </tr>
      ))}
    </Table>
  );
}

export function ArchivedTable({ request, fields }: FieldRows) {
  return (
    <>
      <h2>Archived</h2>
      <p>Archived fields are neither shown nor written. Their values are kept.</p>
      <Table id="archived" name="Archived fields" headings={["Label", "Key", "Type", ACTION]}>
        {fields.map(({ key, label, type }) => (
          <tr id={`archived-${key}`}>
            <th scope="row" class="label">
              {label}
            </th>
            <td>
              <code>{key}</code>
            </td>
            <td>{TYPE_NAMES[type]}</td>
            <td class="action">
              {hasAccess(request.shop.plan) ? (
                <ActionForm action="restore" id={key} button="Bring back" label={`Bring back ${label}`} />
              ) : null}
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}

interface ActionProps {
  action: "archive" | "restore";
  /** The key of the field. */
  id: string;
  button: string;
  /** The button's name for screen readers. It names the field, because each row has such a button. */
  label: string;
}

function ActionForm({ action, id, button, label }: ActionProps) {
  return (
    <Form class="inline" action={`${FIELDS}/${action}/${id}`}>
      <button type="submit" id={`${action}-${id}`} class="small outline" aria-label={label}>
        {button}
      </button>
    </Form>
  );
}
