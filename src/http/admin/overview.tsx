/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { alertText } from "../../domain/deliveries/alert.ts";
import { explainTrouble } from "../../domain/platform/connection-trouble.ts";
import { RESOURCES } from "../../domain/resources.ts";
import { counted } from "../../lib/text.ts";
import { isoUtc } from "../../lib/time.ts";
import type { Handler } from "./admin-request.ts";
import { Bars } from "./bars.tsx";
import { Age, type Fact, Facts, Link, Live } from "./components.tsx";
import { SAMPLE_DELIVERIES } from "./deliveries/sample-log.tsx";
import { RESOURCE_NAMES } from "./resource-names.ts";
import { SampleFigure } from "./samples.tsx";
import { shopifyFacts } from "./shop-data/summary.tsx";
import { COUNTED, readFigures, type ShopFigures } from "./shop-figures.ts";

const TAB = "/overview";

export const showOverview: Handler = async ({ shop }, { store, now }) => {
  const shown = await readFigures(store, shop, now());
  const verdict = verdictOf(shown);
  const live = (
    <Live poll announce={verdict.text}>
      <VerdictBox {...verdict} />
      {wasUsed(shown) ? <Figures {...shown} /> : <FirstSteps {...shown} />}
    </Live>
  );
  return { title: "Overview", tab: TAB, content: live, live };
};

/** Whether the shop has an endpoint, or deliveries were attempted in the last days. */
function wasUsed({ endpoint, days }: ShopFigures): boolean {
  return endpoint !== null || days.some(({ delivered, retried, dead }) => delivered + retried + dead > 0);
}

function Figures(shown: ShopFigures) {
  return (
    <>
      <Stats {...shown} />
      <div class="columns unequal">
        <section class="card" aria-labelledby="bars-heading">
          <h2 id="bars-heading">Deliveries a day</h2>
          <Bars days={shown.days} />
        </section>
        <Data {...shown} />
      </div>
      <NextSteps {...shown} />
    </>
  );
}

/** Shown to a new shop instead of figures, which would all be zero. */
function FirstSteps(shown: ShopFigures) {
  return (
    <>
      <div class="columns">
        <NextSteps {...shown} />
        <Data {...shown} />
      </div>
      <SampleFigure id="overview-sample" sample={SAMPLE_DELIVERIES} />
    </>
  );
}

interface Verdict {
  tone: "good" | "plain" | "warning" | "bad";
  text: string;
  /** What to do: the text of a link, and the path of the link. */
  next?: [text: string, path: string];
  /** The finished part of the load, from 0 to 1. Set only during a load. */
  done?: number;
}

/** Says in a sentence whether all is well, and what to do first if it is not. */
function verdictOf({ status, alerts, endpoint, keys, waiting, dead, deadStarts, delivered }: ShopFigures): Verdict {
  const { load, trouble, uninstalledAt } = status;
  if (uninstalledAt !== null)
    return {
      tone: "bad",
      text: `The app was uninstalled on ${isoUtc(uninstalledAt).slice(0, 10)}. Install it again to go on.`,
    };
  if (trouble !== null) {
    const { what, todo } = explainTrouble(trouble);
    return { tone: "bad", text: `${what} ${todo}`, next: ["See the data", "/data"] };
  }
  if (load !== null)
    return { tone: "plain", text: `Loading your shop: ${load.text}.`, ...(load.done !== null && { done: load.done }) };
  const [alert] = alerts.filter(({ cause }) => cause === "endpoint");
  if (alert !== undefined)
    return { tone: "bad", text: alertText(alert), next: ["See the delivery log", "/deliveries"] };
  if (dead > deadStarts)
    return {
      tone: "bad",
      text: `${counted(dead, "delivery is", "deliveries are")} dead. Repair the endpoint, then resend.`,
      next: ["See the dead deliveries", "/deliveries?status=dead"],
    };
  if (deadStarts > 0)
    return {
      tone: "bad",
      text: `${counted(deadStarts, "workflow was", "workflows were")} not started. Read why, then resend.`,
      next: ["See the workflows", "/deliveries/workflows?status=dead"],
    };
  if (status.inbox.failed > 0)
    return {
      tone: "warning",
      text: `${counted(status.inbox.failed, "change", "changes")} from Shopify could not be processed.`,
      next: ["See why, and try again", "/data/inbox"],
    };
  const waits = waiting.pending + waiting.retrying;
  const atLeast = waiting.isPart ? "At least " : "";
  if (waits > 0)
    return {
      tone: waiting.retrying > 0 ? "warning" : "plain",
      text: `${atLeast}${counted(waits, "delivery waits", "deliveries wait")} for an attempt.`,
      next: ["See the delivery log", "/deliveries"],
    };
  if (endpoint === null && keys === 0)
    return { tone: "plain", text: "Nothing reads this shop's data yet. Begin with an API key or an endpoint." };
  const many = delivered < COUNTED ? "" : "At least ";
  const sent = endpoint === null ? "" : ` ${many}${counted(delivered, "delivery", "deliveries")} in the last 24 hours.`;
  return { tone: "good", text: `All is well.${sent}` };
}

function VerdictBox({ tone, text, next, done }: Verdict) {
  const toneClass = tone === "good" ? "" : ` ${tone}`;
  return (
    <div id="verdict" class={`notice verdict${toneClass}`}>
      <p>
        {text} {next === undefined ? null : <Link to={next[1]}>{next[0]}</Link>}
      </p>
      {done === undefined ? null : <progress value={done} max={1} aria-label="Load of the shop" />}
    </div>
  );
}

function Stats({ endpoint, lastSuccess, figures, waiting, dead, now }: ShopFigures) {
  const { attempts, succeeded, medianMs, percentile95Ms, isPart } = figures;
  const rate = attempts === 0 ? "–" : `${((100 * succeeded) / attempts).toFixed(1)} %`;
  const time =
    medianMs === null || percentile95Ms === null
      ? "–"
      : `${medianMs.toLocaleString("en")} · ${percentile95Ms.toLocaleString("en")} ms`;
  const stats: [name: string, value: ComponentChildren, hint: ComponentChildren][] = [
    [
      "Endpoint",
      <span class="host">{endpoint ?? "not set"}</span>,
      lastSuccess === null ? null : ["last success ", <Age ms={lastSuccess} now={now} />],
    ],
    ["Succeeded, 24 hours", rate, isPart ? "of the newest 1,000 deliveries" : null],
    ["Time, median · 95 %", time, null],
    ["Waiting", waiting.pending.toLocaleString("en"), waiting.isPart ? "or more" : null],
    ["Retrying", <Count count={waiting.retrying} tone="retrying" />, waiting.isPart ? "or more" : null],
    ["Dead", <Count count={dead} tone="dead" />, null],
  ];
  return (
    <dl class="stats" id="stats">
      {stats.map(([name, value, hint]) => (
        <div>
          <dt>{name}</dt>
          <dd>
            {value}
            {hint === null ? null : <span class="hint">{hint}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A count that is coloured unless it is zero. */
function Count({ count, tone }: { count: number; tone: "retrying" | "dead" }) {
  return <span class={count === 0 ? undefined : tone}>{count.toLocaleString("en")}</span>;
}

function Data({ rows, status, lastWebhookAt, now }: ShopFigures) {
  const fromShopify = shopifyFacts(status, lastWebhookAt, now);
  const facts: Fact[] = [
    ...RESOURCES.map((resource): Fact => [RESOURCE_NAMES[resource].many, rows[resource].toLocaleString("en")]),
    // Before the first load, all other facts would say "never".
    ...(status.loadedAt === null ? fromShopify.slice(0, 1) : fromShopify),
  ];
  return (
    <section class="card" aria-labelledby="data-heading">
      <h2 id="data-heading">Data</h2>
      <Facts id="data" facts={facts} />
      <p>
        <Link to="/data/browse">Browse the data</Link>
      </p>
    </section>
  );
}

/** Lists what to do next, until all is done. */
function NextSteps({ rows, status, keys, endpoint, lastSuccess }: ShopFigures) {
  // A shop can be loaded and have no subscriptions.
  const hasData = status.loadedAt !== null || Object.values(rows).some((count) => count > 0);
  const steps: [isDone: boolean, text: string, path: string][] = [
    [hasData, "Load the shop's data", "/data"],
    [keys > 0, "Create an API key", "/keys"],
    [endpoint !== null, "Set an endpoint for webhooks", "/webhooks"],
    [lastSuccess !== null, "Send a test event, and answer it with 200", "/webhooks"],
  ];
  if (steps.every(([isDone]) => isDone)) return null;
  return (
    <section class="card" aria-labelledby="next-heading">
      <h2 id="next-heading">Next</h2>
      <ul class="steps" id="next">
        {steps.map(([isDone, text, path]) => (
          <li class={isDone ? "muted" : undefined}>
            {isDone ? "✓ " : "○ "}
            {isDone ? <span class="visually-hidden">Done: </span> : null}
            {isDone ? text : <Link to={path}>{text}</Link>}
          </li>
        ))}
      </ul>
    </section>
  );
}
