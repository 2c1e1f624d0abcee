/** @jsxImportSource preact */
import { answerDataRequests, exportPerson } from "../../../actions/customer.ts";
import { gidOfNumber } from "../../../actions/row-search.ts";
import { numberOf } from "../../../domain/deliveries/subject.ts";
import { SdsError } from "../../../domain/error.ts";
import { DATA_REQUEST_WARNING_MS, type DataRequest } from "../../../domain/people/data-request.ts";
import { escapeControls } from "../../../lib/log.ts";
import { spanText } from "../../../lib/time.ts";
import type { Handler } from "../admin-request.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { Age, Confirm, Empty, Form, Link, Time } from "../components.tsx";
import { type Sample, SampleFigure } from "../samples.tsx";

const TAB = "/data/requests";

export const showRequests: Handler = async ({ shop }, { store, now }) => {
  const [requests, rows] = await Promise.all([store.dataRequests.open(shop.id), store.shops.rowCounts(shop.id)]);
  const content = (
    <>
      <p>
        Customers may ask which data you have about them. Shopify passes their requests on to this service. Export the
        data, send it to the customer, and mark the request as answered. You have 30 days.
      </p>
      {requests.length === 0 ? (
        <Empty id="no-requests">No customer waits for an answer.</Empty>
      ) : (
        <Requests requests={requests} now={now()} />
      )}
      {rows.customers + requests.length > 0 ? null : <SampleFigure id="no-requests-sample" sample={SAMPLE_REQUEST} />}
    </>
  );
  return { title: "Data", tab: TAB, content };
};

/** Shown to a shop that has no customers and no open requests. */
const SAMPLE_REQUEST: Sample = {
  caption: "This is how a request looks. A button exports the data.",
  content: (
    <CardTable id="sample-request" name="Sample request" headings={["Customer", "Asked", "Due"]}>
      <Row>
        <NameCell>Customer 7001</NameCell>
        <Cell label="Asked">2 h ago</Cell>
        <Cell>due in 29 days</Cell>
      </Row>
    </CardTable>
  ),
};

/** Responds with a file of everything that is stored about a customer. */
export const exportData: Handler = async (request, { store, now }) => {
  const { id } = request;
  const found = await exportPerson(store, request, gidOf(id), now());
  if (found === undefined) throw new SdsError("not_found", `nothing is stored about the customer ${id}`);
  return { file: { name: `customer-${id}.json`, json: `${escapeControls(JSON.stringify(found, null, 2))}\n` } };
};

export const askIfAnswered: Handler = async ({ shop, id }, { store }) => {
  const gid = gidOf(id);
  const isOpen = (await store.dataRequests.open(shop.id)).some(({ customer }) => customer === gid);
  if (!isOpen) throw noRequest(id);
  const content = (
    <Confirm id="mark-as-answered" action={`${TAB}/${id}/answered`} button="Mark as answered" back={TAB}>
      <p>
        Did customer <strong>{id}</strong> get the data? This closes the request and ends its reminders.
      </p>
    </Confirm>
  );
  return { title: "Mark the request as answered", tab: TAB, trail: { to: TAB, name: "Data" }, content };
};

export const markAsAnswered: Handler = async (request, { store, now }) => {
  const { id } = request;
  if ((await answerDataRequests(store, request, gidOf(id), now())) === 0) throw noRequest(id);
  return { to: TAB, notices: [{ text: `The request of customer ${id} is marked as answered.` }] };
};

/** Returns the gid of a customer. @throws SdsError `not_found` if the text is not the number of a gid */
function gidOf(number: string): string {
  if (!/^[1-9]\d{0,19}$/.test(number)) throw new SdsError("not_found", "that is not the number of a customer");
  return gidOfNumber("customers", number);
}

function noRequest(id: string): SdsError {
  return new SdsError("not_found", `customer ${id} has no open request`);
}

function Requests({ requests, now }: { requests: readonly DataRequest[]; now: number }) {
  return (
    <CardTable id="data-requests" name="Data requests" headings={["Customer", "Asked", "Due", "Data", "Answer"]}>
      {requests.map(({ customer, requestedAt, dueAt }) => {
        const number = numberOf(customer);
        return (
          <Row>
            <NameCell>
              <Link to={`/data/browse?${new URLSearchParams({ find: customer })}`}>Customer {number}</Link>
            </NameCell>
            <Cell label="Asked">
              <Age ms={requestedAt} now={now} />
            </Cell>
            <Cell>
              <Due dueAt={dueAt} now={now} />
            </Cell>
            <Cell>
              <Form class="inline" action={`${TAB}/${number}/export`}>
                <button
                  type="submit"
                  id={`export-${number}`}
                  class="outline"
                  aria-label={`Export the data of customer ${number}`}
                >
                  Export
                </button>
              </Form>
            </Cell>
            <Cell>
              <Link to={`${TAB}/${number}/answered`} aria-label={`Mark as answered… the request of customer ${number}`}>
                Mark as answered…
              </Link>
            </Cell>
          </Row>
        );
      })}
    </CardTable>
  );
}

function Due({ dueAt, now }: { dueAt: number; now: number }) {
  if (dueAt < now)
    return (
      <strong class="dead">
        overdue since <Time ms={dueAt} />
      </strong>
    );
  return (
    <span class={dueAt - now < DATA_REQUEST_WARNING_MS ? "retrying" : undefined}>
      due in {spanText(dueAt - now)}, <Time ms={dueAt} />
    </span>
  );
}
