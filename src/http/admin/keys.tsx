/** @jsxImportSource preact */
import { SdsError } from "../../domain/error.ts";
import { type ApiKey, describeKey, generateKey, hashKey, MAX_LABEL } from "../../domain/key.ts";
import { hasAccess } from "../../domain/shop.ts";
import { sentence } from "../../lib/text.ts";
import type { AdminDependencies, AdminRequest, Handler, Page } from "./admin-request.ts";
import { ACTION, Confirm, CsrfField, described, Empty, FieldError, OnceField, Table, Time } from "./components.tsx";
import { requireAccess } from "./plan-access.ts";

const KEYS = "/admin/keys";

/** A form that was refused. */
interface Refused {
  label: string;
  error: string;
}

export const showKeys: Handler = (visit, parts) => keysPage(visit, parts);

export const createKey: Handler = async (visit, parts) => {
  requireAccess(visit.shop);
  const { store, random, now } = parts;
  const label = visit.form.get("label") ?? "";
  const key = generateKey(random);
  try {
    const added = describeKey(key, label, false, random, now());
    await store.keys.add(visit.shop.id, added, hashKey(key));
    return { to: KEYS, notices: [{ text: `This is the new key ${added.label}:`, secret: { name: "the new key", value: key } }] };
  } catch (thrown) {
    if (thrown instanceof SdsError && thrown.code === "invalid") return keysPage(visit, parts, { label, error: sentence(thrown.message) });
    throw thrown;
  }
};

export const askToRevoke: Handler = async (visit, { store }) => {
  const key = keyOf(await store.keys.list(visit.shop.id), visit.id);
  const content = (
    <Confirm id="revoke-key" csrf={visit.csrf} action={`${KEYS}/${key.id}/revoke`} does="Revoke the key" back={KEYS}>
      <p>
        Revoke the key <strong>{key.label}</strong> (<code>{key.fingerprint}…</code>)? The very next request with it is answered with 401. This can't be undone.
      </p>
    </Confirm>
  );
  return { title: "Revoke an API key", section: KEYS, content };
};

export const revokeKey: Handler = async (visit, { store, now }) => {
  const key = keyOf(await store.keys.list(visit.shop.id), visit.id);
  await store.keys.revoke(visit.shop.id, key.id, now());
  return { to: KEYS, notices: [{ text: `The key ${key.label} (${key.fingerprint}…) is revoked.` }] };
};

function keyOf(keys: readonly ApiKey[], id: string): ApiKey {
  const key = keys.find((each) => each.id === id);
  if (key === undefined) throw new SdsError("not_found", "There is no such key, or it is revoked already.");
  return key;
}

async function keysPage(visit: AdminRequest, { store }: AdminDependencies, refused?: Refused): Promise<Page> {
  const keys = await store.keys.list(visit.shop.id);
  const content = (
    <>
      <p>
        With a key, another system reads this shop's subscriptions, customers and orders through the API. A key can't write, and doesn't expire. Give each
        system one of its own.
      </p>
      {keys.length === 0 ? (
        <Empty id="no-keys">There is no key yet. Create one below, and give it to the system that is to read this shop.</Empty>
      ) : (
        <KeyTable keys={keys} />
      )}
      <CreateForm visit={visit} refused={refused} />
    </>
  );
  return { title: "API keys", section: KEYS, status: refused === undefined ? 200 : 422, content };
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
              <a id={`revoke-${key.id}`} href={`${KEYS}/${key.id}/revoke`} aria-label={`Revoke ${key.label}`}>
                Revoke
              </a>
            </td>
          </tr>
        ))}
      </Table>
      {keys.some(({ legacy }) => legacy) ? (
        <p id="legacy-hint">
          <strong>Legacy, rotate:</strong> this key was once stored in plain text by an older system. It still works. Rotate it soon: create a new key with a
          new label, give it to the system and see that its calls are answered with 200, then revoke the old one.
        </p>
      ) : null}
    </>
  );
}

function CreateForm({ visit, refused }: { visit: AdminRequest; refused: Refused | undefined }) {
  return (
    <form id="create-key" method="post" action={KEYS} aria-labelledby="create-key-heading">
      <h2 id="create-key-heading">Create a key</h2>
      <CsrfField csrf={visit.csrf} />
      <OnceField />
      <fieldset disabled={!hasAccess(visit.shop.plan)}>
        <label for="label">Label</label>
        <input
          id="label"
          name="label"
          value={refused?.label ?? ""}
          maxLength={MAX_LABEL}
          required
          autocomplete="off"
          {...described(refused?.error, "label-error", "label-help")}
        />
        <FieldError id="label-error" error={refused?.error} />
        <small id="label-help">What tells this key from the others: the system that uses it, for instance.</small>
        <button type="submit" id="create">
          Create key
        </button>
      </fieldset>
    </form>
  );
}
