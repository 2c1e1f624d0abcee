/** @jsxImportSource preact */
import type { FieldDefinition } from "../../../domain/fields/definition.ts";
import { hasAccess } from "../../../domain/shop.ts";
import type { AdminRequest } from "../admin-request.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { ACTION, Form, Link } from "../components.tsx";
import { FIELDS, TYPE_NAMES } from "./field-form.tsx";

interface FieldRows {
  request: AdminRequest;
  fields: readonly FieldDefinition[];
}

/** Shows the fields that are not archived. */
export function FieldTable({ fields }: Pick<FieldRows, "fields">) {
  return (
    <CardTable id="fields" name="Custom fields" headings={["Label", "Key", "Type", "Edited by", "Personal", ACTION]}>
      {fields.map(({ key, label, type, options, subscriberEditable, personal }) => (
        <Row id={`field-${key}`}>
          <NameCell>{label}</NameCell>
          <Cell>
            <code>{key}</code>
          </Cell>
          <Cell label="Type">
            {TYPE_NAMES[type]}
            {type === "choice" ? `: ${options.join(", ")}` : null}
          </Cell>
          <Cell label="Edited by">{subscriberEditable ? "you and subscribers" : "you"}</Cell>
          <Cell label="Personal">{personal ? "yes" : "no"}</Cell>
          <Cell>
            <div class="actions in-line">
              <Link id={`edit-${key}`} to={`${FIELDS}/edit/${key}`} aria-label={`Edit ${label}`}>
                Edit
              </Link>
              <ActionForm action="archive" id={key} button="Archive" label={`Archive ${label}`} />
            </div>
          </Cell>
        </Row>
      ))}
    </CardTable>
  );
}

export function ArchivedTable({ request, fields }: FieldRows) {
  return (
    <>
      <h2>Archived</h2>
      <p>Archived fields are neither shown nor written. Their values are kept.</p>
      <CardTable id="archived" name="Archived fields" headings={["Label", "Key", "Type", ACTION]}>
        {fields.map(({ key, label, type }) => (
          <Row id={`archived-${key}`}>
            <NameCell>{label}</NameCell>
            <Cell>
              <code>{key}</code>
            </Cell>
            <Cell label="Type">{TYPE_NAMES[type]}</Cell>
            <Cell>
              {hasAccess(request.shop.plan) ? (
                <ActionForm action="restore" id={key} button="Bring back" label={`Bring back ${label}`} />
              ) : null}
            </Cell>
          </Row>
        ))}
      </CardTable>
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
