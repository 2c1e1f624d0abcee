/** @jsxImportSource preact */
import { addAlertAddress, removeAlertAddress } from "../../../actions/alert-address.ts";
import { SdsError } from "../../../domain/error.ts";
import { type AlertAddress, MAX_ADDRESSES } from "../../../store/port/alerts.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler } from "../admin-request.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { ACTION, Empty, FieldError, Form, fieldAttributes, Link, Time } from "../components.tsx";

const TAB = "/alerts";

/** Says why an address is not added. */
const REFUSALS = {
  known: "This address is in the list already.",
  full: `A shop can have ${MAX_ADDRESSES} addresses. Remove one first.`,
  "too many": "Too many addresses were added today. Add this one tomorrow.",
  wrong: "This is not an e-mail address.",
} as const;

export const showAlerts: Handler = (request, dependencies) => alertsPage(request, dependencies);

export const addAddress: Handler = async (request, dependencies) => {
  const { shop, actor, form } = request;
  const { store, now, sendsMail } = dependencies;
  if (!sendsMail) throw new SdsError("conflict", "this service sends no e-mails at present");
  const typed = (form.get("address") ?? "").trim();
  const result = await addAlertAddress(store, { shop, actor }, typed, now());
  if (result !== "added") return alertsPage(request, dependencies, { typed, error: REFUSALS[result] });
  return { to: TAB, notices: [{ text: `${typed} gets an e-mail with a link that confirms the address.` }] };
};

export const removeAddress: Handler = async ({ shop, actor, id }, { store, now }) => {
  const address = (await store.alerts.addresses(shop.id)).find(({ number }) => String(number) === id);
  if (address === undefined) return { to: TAB };
  await removeAlertAddress(store, shop, address, now(), actor);
  return { to: TAB, notices: [{ text: `${address.address} is removed.` }] };
};

async function alertsPage(
  { shop }: AdminRequest,
  { store, sendsMail }: AdminDependencies,
  refused?: { typed: string; error: string },
): Promise<AdminPage> {
  const addresses = await store.alerts.addresses(shop.id);
  const content = (
    <>
      <p>
        An alert says that your endpoint has failed for an hour, that a delivery is dead, or that Shopify refuses the
        app's connection. Every page shows it until all is well again. For the first two, the{" "}
        <Link to="/triggers">workflow trigger</Link> “Webhook endpoint failing” can start a workflow of yours.
      </p>
      <h2>E-mails</h2>
      {addresses.length > 0 ? (
        <Addresses addresses={addresses} />
      ) : sendsMail ? (
        <Empty id="no-addresses">
          Add an address, and it gets an e-mail when an alert begins and when it ends: at most one a day for each
          reason.
        </Empty>
      ) : null}
      {sendsMail ? (
        <AddressForm {...refused} />
      ) : (
        <p id="no-mail">This service sends no e-mails at present. Its operator can set that up.</p>
      )}
    </>
  );
  return { title: "Alerts", tab: TAB, content, ...(refused !== undefined && { status: 422 }) };
}

function Addresses({ addresses }: { addresses: readonly AlertAddress[] }) {
  return (
    <CardTable id="addresses" name="E-mail addresses" headings={["Address", "Added", "State", ACTION]}>
      {addresses.map(({ number, address, addedAt, confirmedAt }) => (
        <Row>
          <NameCell>{address}</NameCell>
          <Cell label="Added">
            <Time ms={addedAt} />
          </Cell>
          <Cell>{confirmedAt === null ? "Waits for its confirmation" : "Confirmed"}</Cell>
          <Cell>
            <Form action={`${TAB}/remove/${number}`}>
              <button type="submit" class="secondary" aria-label={`Remove ${address}`}>
                Remove
              </button>
            </Form>
          </Cell>
        </Row>
      ))}
    </CardTable>
  );
}

function AddressForm({ typed = "", error }: { typed?: string; error?: string }) {
  return (
    <Form id="add-address" action={TAB}>
      <label for="address">E-mail address</label>
      <input
        type="email"
        id="address"
        name="address"
        value={typed}
        maxLength={254}
        required
        autocomplete="email"
        {...fieldAttributes(error, "address-error")}
      />
      <FieldError id="address-error" error={error} />
      <button type="submit" id="save-address">
        Add address
      </button>
    </Form>
  );
}
