/** @jsxImportSource preact */
import { explainFailure } from "../../../domain/deliveries/failure.ts";
import { printable } from "../../../lib/log.ts";
import type { DeliveryDetails } from "../../../store/port/deliveries.ts";
import type { Store } from "../../../store/port/store.ts";
import { Age, Link, Live } from "../components.tsx";
import { nextText, SHAPES } from "../deliveries/log-table.tsx";

/** The newest test event of a shop. */
export interface TestEvent {
  delivery: DeliveryDetails;
  /** Whether the shop's current secret signs the test event. */
  hasCurrentSecret: boolean;
  /** Whether the last attempt of the test event went to the shop's current URL. */
  hasCurrentUrl: boolean;
  now: number;
}

/** Finds the newest test event. @param url the endpoint's URL @returns undefined if there is no test event */
export async function findTestEvent(
  { deliveries, webhooks }: Pick<Store, "deliveries" | "webhooks">,
  shopId: number,
  url: string | null,
  now: number,
): Promise<TestEvent | undefined> {
  const id = await deliveries.newestTest(shopId);
  if (id === undefined) return undefined;
  const delivery = await deliveries.show(shopId, id);
  const [secret, newest] = [
    await webhooks.secretOf(shopId, delivery.secretVersion),
    await webhooks.secret(shopId, now),
  ];
  const sentTo = delivery.history.at(-1)?.url ?? url;
  return { delivery, hasCurrentSecret: secret === newest, hasCurrentUrl: url === null || sentTo === url, now };
}

/** The verdict of the newest test event. The script keeps the verdict current. */
export function TestResult({ test }: { test: TestEvent | undefined }) {
  if (test === undefined)
    return (
      <Live poll={false} announce="">
        <p id="no-test" class="muted">
          The answer of your endpoint appears here.
        </p>
      </Live>
    );
  const { delivery, hasCurrentUrl, now } = test;
  const { id, topic, createdAt, status } = delivery;
  const { tone, shape, what, todo } = verdictOf(test);
  return (
    <Live poll={status === "pending" || status === "retrying"} announce={what}>
      <div id="test-result" class={`notice${tone}`}>
        <p>
          <span aria-hidden="true">{shape}</span> <strong>{what}</strong> {todo}
        </p>
        {hasCurrentUrl ? null : <p>This test went to a former URL. Send a new one.</p>}
        <p class="hint">
          {topic} · <Age ms={createdAt} now={now} /> ·{" "}
          <Link id="test-delivery" to={`/deliveries/${id}`}>
            See the delivery
          </Link>
        </p>
      </div>
    </Live>
  );
}

interface TestVerdict {
  /** Class of the box. */
  tone: string;
  /** A character that shows the verdict, for readers who cannot tell the colours apart. */
  shape: string;
  what: string;
  todo: string;
}

function verdictOf({ delivery, hasCurrentSecret, now }: TestEvent): TestVerdict {
  const { status, history, nextAttemptAt } = delivery;
  const last = history.at(-1);
  if (last === undefined || status === "pending")
    return { tone: " plain", shape: SHAPES.pending, what: "The test event is on its way.", todo: "" };
  const failure = explainFailure(last);
  if (failure === undefined) {
    const todo = `signed with the ${hasCurrentSecret ? "current" : "former"} secret.`;
    return { tone: "", shape: SHAPES.delivered, what: `${last.statusCode} in ${last.duration} ms,`, todo };
  }
  const what = printable(failure.what);
  if (nextAttemptAt === null) return { tone: " bad", shape: SHAPES.dead, what, todo: failure.todo };
  const next = `The next attempt is ${nextText(nextAttemptAt, now)}.`;
  return { tone: " warning", shape: SHAPES.retrying, what, todo: `${failure.todo} ${next}` };
}
