/** @jsxImportSource preact */
import { counted } from "../../lib/text.ts";

/** Attempts of one day in UTC, by outcome. */
export interface DayCounts {
  /** `YYYY-MM-DD`. */
  day: string;
  delivered: number;
  retried: number;
  dead: number;
}

const OUTCOMES = ["delivered", "retried", "dead"] as const;
const WIDTH = 720;
const HEIGHT = 120;
/** Width of a bar, as a share of the space of its day. */
const BAR_SHARE = 0.75;

/**
 * Shows the deliveries of each day as stacked bars, and the same numbers as a table.
 * @param days oldest first, without gaps
 */
export function Bars({ days }: { days: readonly DayCounts[] }) {
  const max = Math.max(1, ...days.map(totalOf));
  const title = `Deliveries a day, last ${days.length} days: ${outcomesText(days)}`;
  return (
    <>
      <svg
        class="bars"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-labelledby="bars-title"
      >
        <title id="bars-title">{title}</title>
        <Hatches />
        {days.map((day, index) => (
          <Bar day={day} x={(index * WIDTH) / days.length} width={(WIDTH / days.length) * BAR_SHARE} max={max} />
        ))}
      </svg>
      <p class="scale">
        <span>{shortDay(days[0]?.day)}</span>
        <span>at most {counted(max, "attempt", "attempts")} a day</span>
        <span>{shortDay(days.at(-1)?.day)}</span>
      </p>
      <ul class="legend">
        {OUTCOMES.map((outcome) => (
          <li>
            <svg viewBox="0 0 10 10" aria-hidden="true">
              <rect class={`bar-${outcome}`} width="10" height="10" />
            </svg>
            {outcome}
          </li>
        ))}
      </ul>
      <details>
        <summary>The numbers as a table</summary>
        <DayTable days={days} />
      </details>
    </>
  );
}

/** A table that scrolls sideways on a narrow screen. Its tabIndex lets the keyboard scroll it. */
function DayTable({ days }: { days: readonly DayCounts[] }) {
  return (
    <section class="overflow-auto" aria-label="Deliveries a day" tabIndex={0}>
      <table id="days">
        <thead>
          <tr>
            {["Day", "Delivered", "Retried", "Dead"].map((heading) => (
              <th scope="col">{heading}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.toReversed().map(({ day, delivered, retried, dead }) => (
            <tr>
              <th scope="row">{day}</th>
              <td>{delivered.toLocaleString("en")}</td>
              <td>{retried.toLocaleString("en")}</td>
              <td>{dead.toLocaleString("en")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Patterns in addition to the colours, for readers who cannot tell the colours apart. */
function Hatches() {
  return (
    <defs>
      <pattern id="hatch-retried" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="bar-retried" width="6" height="6" />
        <rect class="bar-gap" width="2" height="6" />
      </pattern>
      <pattern id="hatch-dead" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
        <rect class="bar-dead" width="6" height="6" />
        <rect class="bar-gap" width="3" height="6" />
      </pattern>
    </defs>
  );
}

function Bar({ day, x, width, max }: { day: DayCounts; x: number; width: number; max: number }) {
  const unit = HEIGHT / max;
  let y = HEIGHT;
  const parts = OUTCOMES.filter((outcome) => day[outcome] > 0).map((outcome) => {
    const height = day[outcome] * unit;
    y -= height;
    const fill = outcome === "delivered" ? { class: "bar-delivered" } : { fill: `url(#hatch-${outcome})` };
    return <rect {...fill} x={x} y={y} width={width} height={height} />;
  });
  return (
    <g>
      <title>{`${day.day}: ${outcomesText([day])}`}</title>
      {parts}
    </g>
  );
}

function outcomesText(days: readonly DayCounts[]): string {
  const sum = (outcome: (typeof OUTCOMES)[number]) => days.reduce((total, day) => total + day[outcome], 0);
  return OUTCOMES.map((outcome) => `${sum(outcome).toLocaleString("en")} ${outcome}`).join(", ");
}

function totalOf({ delivered, retried, dead }: DayCounts): number {
  return delivered + retried + dead;
}

/** Returns a day as text, such as `24 Oct`. */
function shortDay(day: string | undefined): string {
  if (day === undefined) return "";
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }).format(new Date(day));
}
