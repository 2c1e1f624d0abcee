/** @jsxImportSource preact */
import * as actions from "../../actions/key.ts";
import { SdsError } from "../../domain/error.ts";
import { type ApiKey, MAX_LABEL } from "../../domain/key.ts";
import { hasAccess } from "../../domain/shop.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler } from "./admin-request.ts";
import { ACTION, Confirm, FieldError, Form, fieldAttributes, Link, OnceField, Table, Time } from "./components.tsx";
import { reasonOf } from "./form.ts";
import { EmptySection, sampleCall } from "./samples.tsx";

const KEYS = "/keys";

/** A refused form: the typed text and the reason. */
interface RefusedLabel {
  label: string;
  error: string;
}

export const showKeys: Handler = (request, dependencies) => keysPage(request, dependencies);

export const createKey: Handler = async (request, dependencies) => {
  const label = request.form.get("label") ?? "";
  try {
    const { shop, who } = request;
    const { entry, plaintext } = await actions.createKey(
      dependencies,
      { shop, label, actor: "merchant", createdBy: who },
      dependencies.now(),
    );
    const secret = { name: "the new key", value: plaintext };
    return { to: KEYS, notices: [{ text: `This is the new key ${entry.label}:`, secret }] };
  } catch (thrown) {
    return keysPage(request, dependencies, { label, error: reasonOf(thrown, "invalid") });
  }
};

export const askToRevoke: Handler = async ({ shop, id }, { store }) => {
  const key = (await store.keys.list(shop.id)).find((each) => each.id === id);
  if (key === undefined) throw new SdsError("not_found", `there is no key ${id}, or it is revoked already`);
  const content = (
    <Confirm id="revoke-key" action={`${KEYS}/${key.id}/revoke`} button="Revoke the key" back={KEYS}>
      <p>
        Revoke the key <strong>{key.label}</strong> (<code>{key.fingerprint}…</code>)? The next request with it is
        answered with 401. This can't be undone.
      </p>
    </Confirm>
  );
  return { title: "Revoke an API key", tab: KEYS, content };
};

export const revokeKey: Handler = async ({ shop, id }, { store, now }) => {
  const { label, fingerprint } = await store.keys.revoke(shop.id, id, now());
  return { to: KEYS, notices: [{ text: `The key ${label} (${fingerprint}…) is revoked.` }] };
};

async function keysPage(
  request: AdminRequest,
  { store, publicUrl }: AdminDependencies,
  refusal?: RefusedLabel,
): Promise<AdminPage> {
  const keys = await store.keys.list(request.shop.id);
  const content = (
    <>
      <p>
        With an API key, another system can read this shop's subscriptions, customers and orders. A key can't change
        anything, and it doesn't expire. Give each system its own key.
      </p>
      {keys.length === 0 ? (
        <EmptySection id="no-keys" sample={sampleCall(publicUrl ?? "https://sds.example.com")}>
          There is no key yet. Create one below, and give it to the system that reads this shop's data.
        </EmptySection>
      ) : (
        <KeyTable keys={keys} />
      )}
      <CreateForm request={request} refusal={refusal} />
    </>
  );
  return { title: "API keys", tab: KEYS, status: refusal === undefined ? 200 : 422, content };
}

function KeyTable({ keys }: { keys: readonly ApiKey[] }) {
  return (
    <>
      <Table id="keys" name="API keys" headings={["Label", "Begins with", "Created", "Last used", ACTION]}>
        {keys.map((key) => (
          <tr id={key.id}>
            <th scope="row" class="label">
              {key.label} {key.legacy ? <span class="badge warning">Legacy, rotate</span> : null}
            </th>
            <td>
              <code>{key.fingerprint}…</code>
            </td>
            <td>
              <Time ms={key.createdAt} />
            </td>
            <td>{key.lastUsedAt === null ? "never" : <Time ms={key.lastUsedAt} />}</td>
            <td class="action">
              <Link id={`revoke-${key.id}`} to={`${KEYS}/${key.id}/revoke`} aria-label={`Revoke ${key.label}`}>
                Revoke
              </Link>
            </td>
          </tr>
        ))}
      </Table>
      {keys.some(({ legacy }) => legacy) ? (
        <p id="legacy-hint">
          <strong>Legacy, rotate:</strong> an older system stored this key as plain text. The key still works. Rotate it
          soon: create a new key, give it to the system that uses the old one, check that its calls are answered with
          200, and then revoke the old key.
        </p>
      ) : null}
    </>
  );
}

function CreateForm({ request, refusal }: { request: AdminRequest; refusal: RefusedLabel | undefined }) {
  return (
    <Form id="create-key" action={KEYS} aria-labelledby="create-key-heading">
      <h2 id="create-key-heading">Create a key</h2>
      <OnceField />
      <fieldset disabled={!hasAccess(request.shop.plan)}>
        <label for="label">Label</label>
        <input
          id="label"
          name="label"
          value={refusal?.label ?? ""}
          maxLength={MAX_LABEL}
          required
          autocomplete="off"
          {...fieldAttributes(refusal?.error, "label-error", "label-help")}
        />
        <FieldError id="label-error" error={refusal?.error} />
        <small id="label-help">A name for this key, for instance the system that uses it.</small>
        <button type="submit" id="create">
          Create key
        </button>
      </fieldset>
    </Form>
  );
}
