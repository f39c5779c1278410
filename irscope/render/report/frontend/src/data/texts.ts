// Unpacks the texts of a report: each is stored whole, or as what makes it from the lines of another one.
import { inflateSync } from "fflate";
import type { TextRow } from "./model";
import { wholeOf, Plain } from "./columns";
import { withNumbers } from "./numbers";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();
/** How far back a compressed text may point. */
export const WINDOW = 1 << 15;
const KEPT = 96;

export class Texts {
  private readonly known = new Map<number, string[]>();
  private readonly packed = new Map<number, string[]>();
  private readonly plains = new Map<number, Plain>();

  /** `bytes` are those of a chunk, by its number. */
  constructor(
    private readonly rows: readonly TextRow[],
    private readonly bytes: (chunk: number) => Uint8Array,
  ) {}

  /** The lines of a text, by its number. */
  lines(number: number): string[] {
    return recent(this.known, number, KEPT, () => {
      const row = this.rows[number];
      if (row?.length === 2) return wholeOf(this.lines(row[0]), this.lines(row[1]));
      const stored = this.stored(number);
      return row?.[5] ? withNumbers(stored) : stored;
    });
  }

  /** The lines of a text without locations. */
  plain(number: number): Plain {
    return recent(this.plains, number, KEPT, () => {
      const row = this.rows[number];
      return row?.length === 2 ? new Plain(this.lines(row[0]), this.lines(row[1])) : new Plain(this.lines(number));
    });
  }

  /** What two such lines have in common where they say the same under other numbers. */
  keys(number: number): string[] {
    const row = this.rows[number];
    return this.stored(row?.length === 2 ? row[0] : number);
  }

  /** The lines of a text as the page holds them. */
  private stored(number: number): string[] {
    const row = this.rows[number];
    if (!row || row.length === 2) return [];
    return recent(this.packed, number, KEPT, () => {
      const [chunk, offset, length, cut, base] = row;
      const all = this.bytes(chunk);
      const fresh = all.subarray(offset + cut, offset + length);
      if (base < 0) return decoder.decode(inflateSync(fresh)).split("\n");
      const steps = JSON.parse(decoder.decode(inflateSync(all.subarray(offset, offset + cut)))) as number[];
      return applied(this.stored(base), steps, fresh);
    });
  }
}

/** A value that is kept, or made and kept; of the others the `most` that were asked for last stay. */
export function recent<K, V>(kept: Map<K, V>, key: K, most: number, make: () => V): V {
  const known = kept.get(key);
  const found = known ?? make();
  kept.delete(key);
  kept.set(key, found);
  if (known !== undefined) return found;
  for (const oldest of kept.keys()) {
    if (kept.size <= most) break;
    kept.delete(oldest);
  }
  return found;
}

/** The lines that a base and what is new make. */
function applied(base: string[], steps: number[], fresh: Uint8Array): string[] {
  const copied = new Uint8Array(base.length);
  const starts: number[] = [];
  for (let index = 0, end = 0; index < steps.length; index += 3) {
    const start = end + steps[index + 1]!;
    end = start + steps[index + 2]!;
    starts.push(start);
    copied.fill(1, start, end);
  }
  // What is new was compressed with the lines that are copied nowhere at hand.
  const likely = encoder.encode(base.filter((_, line) => !copied[line]).join("\n")).subarray(-WINDOW);
  const added = decoder.decode(inflateSync(fresh, { dictionary: likely })).split("\n");
  added.pop();
  const lines: string[] = [];
  let at = 0;
  starts.forEach((start, index) => {
    for (const end = at + steps[3 * index]!; at < end; at++) lines.push(added[at]!);
    for (let line = start; line < start + steps[3 * index + 2]!; line++) lines.push(base[line]!);
  });
  while (at < added.length) lines.push(added[at++]!);
  return lines;
}
