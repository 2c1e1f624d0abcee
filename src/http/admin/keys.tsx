/** @jsxImportSource preact */
import * as actions from "../../actions/key.ts";
import { SdsError } from "../../domain/error.ts";
import { type ApiKey, MAX_LABEL } from "../../domain/key.ts";
import { hasAccess } from "../../domain/shop.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler } from "./admin-request.ts";
import { CardTable, Cell, NameCell, Row } from "./card-table.ts";
import { ACTION, Age, Confirm, FieldError, Form, fieldAttributes, Link, OnceField, Time } from "./components.tsx";
import { reasonOf } from "./form.ts";
import { EmptySection, sampleCall } from "./samples.tsx";

const KEYS = "/keys";
const TRAIL = { to: KEYS, name: "API keys" };

/** A refused form: the typed text and the reason. */
interface RefusedLabel {
  label: string;
  error: string;
}

export const showKeys: Handler = (request, dependencies) => keysPage(request, dependencies);

export const createKey: Handler = async (request, dependencies) => {
  const { shop, actor, form } = request;
  const label = form.get("label") ?? "";
  const same = await actions.findKeyWithLabel(dependencies.store, shop, label);
  if (same !== undefined && form.get("again") !== "yes") return askToRepeat(same);
  try {
    const { entry, plaintext } = await actions.createKey(dependencies, { shop, label, actor }, dependencies.now());
    const newKey = { value: plaintext, address: dependencies.address() };
    return { to: KEYS, notices: [{ text: `This is the new key ${entry.label}:`, newKey }] };
  } catch (thrown) {
    return keysPage(request, dependencies, { label, error: reasonOf(thrown, "invalid") });
  }
};

/** Asks for confirmation before a second key gets the same label. */
function askToRepeat({ label, fingerprint }: ApiKey): AdminPage {
  const content = (
    <Confirm id="repeat-label" action={KEYS} button="Create another key" back={KEYS} isDanger={false}>
      <input type="hidden" name="label" value={label} />
      <input type="hidden" name="again" value="yes" />
      <p>
        The key <code>{fingerprint}…</code> has the label <strong>{label}</strong> already. Create another key with this
        label? If each key has its own label, you can tell later which system uses it.
      </p>
    </Confirm>
  );
  return { title: "Create a second key with this label", tab: KEYS, trail: TRAIL, status: 409, content };
}

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
  return { title: "Revoke an API key", tab: KEYS, trail: TRAIL, content };
};

export const revokeKey: Handler = async ({ shop, actor, id }, { store, now }) => {
  const { label, fingerprint } = await actions.revokeKey(store, { shop, actor }, id, now());
  return { to: KEYS, notices: [{ text: `The key ${label} (${fingerprint}…) is revoked.` }] };
};

async function keysPage(
  { shop }: AdminRequest,
  { store, address, now }: AdminDependencies,
  refusal?: RefusedLabel,
): Promise<AdminPage> {
  const keys = await store.keys.list(shop.id);
  const content = (
    <>
      <p>
        With an API key, another system can read this shop's subscriptions, customers and orders. A key can't change
        anything, and it doesn't expire. Give each system its own key.
      </p>
      <CreateForm canCreate={hasAccess(shop.plan)} refusal={refusal} />
      {keys.length === 0 ? (
        <EmptySection id="no-keys" sample={sampleCall(address())}>
          There is no key yet. Create one above, and give it to the system that reads this shop's data.
        </EmptySection>
      ) : (
        <KeyTable keys={keys} now={now()} />
      )}
    </>
  );
  return { title: "API keys", tab: KEYS, status: refusal === undefined ? 200 : 422, content };
}

function KeyTable({ keys, now }: { keys: readonly ApiKey[]; now: number }) {
  return (
    <>
      <CardTable id="keys" name="API keys" headings={["Label", "Key", "Made by", "Made", "Last used", ACTION]}>
        {keys.map((key) => (
          <Row id={key.id}>
            <NameCell>
              {key.label} {key.legacy ? <span class="badge warning">Legacy, rotate</span> : null}
            </NameCell>
            <Cell>
              <code>{key.fingerprint}…</code>
            </Cell>
            <Cell label="Made by">{key.createdBy ?? "unknown"}</Cell>
            <Cell label="Made">
              <Time ms={key.createdAt} />
            </Cell>
            <Cell label="Last used">{key.lastUsedAt === null ? "never" : <Age ms={key.lastUsedAt} now={now} />}</Cell>
            <Cell class="corner">
              <Link id={`revoke-${key.id}`} to={`${KEYS}/${key.id}/revoke`} aria-label={`Revoke ${key.label}`}>
                Revoke
              </Link>
            </Cell>
          </Row>
        ))}
      </CardTable>
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

function CreateForm({ canCreate, refusal }: { canCreate: boolean; refusal: RefusedLabel | undefined }) {
  return (
    <Form id="create-key" action={KEYS}>
      <OnceField />
      <fieldset disabled={!canCreate}>
        <label for="label">Label</label>
        <div class="line">
          <input
            id="label"
            name="label"
            value={refusal?.label ?? ""}
            maxLength={MAX_LABEL}
            required
            autocomplete="off"
            {...fieldAttributes(refusal?.error, "label-error", "label-help")}
          />
          <button type="submit" id="create">
            Create key
          </button>
        </div>
        <FieldError id="label-error" error={refusal?.error} />
        <small id="label-help">A name for the key, such as the system that uses it.</small>
      </fieldset>
    </Form>
  );
}
