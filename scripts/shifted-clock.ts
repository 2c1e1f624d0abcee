/**
 * scripts/store-database preloads this file into the program. The program's clock is then CLOCK_SHIFT_MS milliseconds
 * ahead. With a negative number it is behind.
 */
const shiftMs = Number(process.env["CLOCK_SHIFT_MS"] ?? "0");
const RealDate = Date;

class ShiftedDate extends RealDate {
  constructor(...given: [] | ConstructorParameters<typeof Date>) {
    if (given.length === 0) super(ShiftedDate.now());
    else super(...given);
  }

  static override now(): number {
    return RealDate.now() + shiftMs;
  }
}

globalThis.Date = ShiftedDate as typeof Date;
