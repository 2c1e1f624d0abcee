import { cpus } from "node:os";

/** A Markdown table of measured values and their targets. */
export class Table {
  private readonly rows: string[][] = [];

  /** A ratio that should be at least `target`. */
  addRatio(name: string, measured: string, ratio: number, target: number): void {
    const met = ratio >= target ? "yes" : `no, ${percent(1 - ratio / target)} short`;
    this.rows.push([name, measured, ratio.toFixed(2), `at least ${target}`, met]);
  }

  /** A ratio that should be below `limit`. */
  addRatioBelow(name: string, measured: string, ratio: number, limit: number): void {
    const met = ratio < limit ? "yes" : `no, ${percent(ratio / limit - 1)} over`;
    this.rows.push([name, measured, ratio.toFixed(2), `below ${limit}`, met]);
  }

  /** A value that should be below `limit`. */
  addBound(name: string, value: number, limit: number, unit: string, remark = ""): void {
    const met = value < limit ? "yes" : `no, ${percent(value / limit - 1)} over`;
    this.rows.push([name, `${rounded(value)} ${unit}${remark}`, "", `below ${limit} ${unit}`, met]);
  }

  /** A result that is either right or wrong. */
  addCheck(name: string, measured: string, target: string, met: boolean): void {
    this.rows.push([name, measured, "", target, met ? "yes" : "no"]);
  }

  /** A value without a target. */
  addRemark(name: string, measured: string, target = ""): void {
    this.rows.push([name, measured, "", target, ""]);
  }

  toString(): string {
    const heading = ["", "measured", "ratio", "target", "met"];
    const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
    return [line(heading), line(heading.map(() => "---")), ...this.rows.map(line)].join("\n");
  }
}

/**
 * Names the machine and the day of a measurement.
 * @param programs other programs that took part, with their versions
 */
export function machineLine(...programs: string[]): string {
  const day = new Date().toISOString().slice(0, 10);
  return [`${cpus()[0]?.model.trim()}, ${cpus().length} cores, Bun ${Bun.version}`, ...programs, day].join(", ");
}

/** @throws Error on a machine with one core, because server and client need a core each */
export function needTwoCores(): void {
  if (cpus().length < 2) throw new Error("this bench needs two cores: one for the server, one for the clients");
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

export function rounded(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0);
}

export function rate(perSecond: number): string {
  return `${Math.round(perSecond).toLocaleString("en")}/s`;
}
