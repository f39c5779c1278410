// A linear layout as a map: which register of which thread holds each element, or which offset of memory.
import type { LayoutRow } from "../data/model";

export interface Bit {
  input: string;
  bit: number;
  vector: number[];
  /** The vector as an index of the row-major element. */
  flat: number;
}

export type Parts = Record<string, number>;
export type Coloring = "warp" | "lane" | "register" | "vector" | "bank" | "line" | "row" | "column";

const INPUTS = {
  register: ["register", "lane", "warp", "block"],
  offset: ["offset", "block"],
  column: ["column", "row"],
};
const COLORINGS: Record<keyof typeof INPUTS, Coloring[]> = {
  register: ["warp", "lane", "register", "vector"],
  offset: ["bank", "line"],
  column: ["row", "column"],
};
const MOST_PLACES = 1 << 18;
const MOST_IN_A_LINE = 64;
const ACCESS_BITS = 128;

/** A place is a number whose digits are the inputs, the first one running fastest. */
export class LayoutMap {
  /** Of each place its element. */
  readonly places: Int32Array;
  /** Of each element its places. */
  readonly owners: number[][];
  readonly bits: Bit[];
  readonly size: number;
  /** In shared memory the place at each element of memory, -1 where padding is; one CTA after another. */
  readonly slots: Int32Array | undefined;

  private constructor(
    readonly name: string,
    readonly kind: keyof typeof INPUTS,
    readonly shape: number[],
    readonly dimensions: string[],
    readonly inputs: { name: string; size: number; vectors: number[][] }[],
    readonly elementBits: number,
    readonly vector: number,
    readonly banks: number,
    /** (interval, padding after it), in elements. */
    private readonly steps: [number, number][],
  ) {
    const flat = (vector: number[]) => vector.reduce((index, part, at) => index * shape[at]! + part, 0);
    this.bits = inputs.flatMap((input) =>
      input.vectors.map((vector, bit) => ({ input: input.name, bit, vector, flat: flat(vector) })),
    );
    this.size = shape.reduce((product, size) => product * size, 1);
    this.places = new Int32Array(2 ** this.bits.length);
    this.bits.forEach(({ flat: step }, bit) => {
      for (let place = 0; place < 2 ** bit; place++) this.places[place + 2 ** bit] = this.places[place]! ^ step;
    });
    this.owners = Array.from({ length: this.size }, () => []);
    this.places.forEach((element, place) => this.owners[element]?.push(place));
    this.slots = kind === "offset" ? this.memory() : undefined;
  }

  /** The map of a layout; undefined where the compiler gave no answer, or it is too large to draw. */
  static of(row: LayoutRow): LayoutMap | undefined {
    const dims = row["out_dims"] as [string, number][] | undefined;
    if (!row.bases || !dims) return undefined;
    const bases: Record<string, number[][]> = Array.isArray(row.bases) ? Object.fromEntries(row.bases) : row.bases;
    const kind = "offset" in bases ? "offset" : "register" in bases || "lane" in bases ? "register" : "column";
    const inputs = INPUTS[kind].map((name) => {
      const vectors = bases[name] ?? [];
      return { name, vectors, size: 2 ** vectors.length };
    });
    if (inputs.reduce((product, input) => product * input.size, 1) > MOST_PLACES) return undefined;
    return new LayoutMap(
      `${String(row["name"] ?? "")} ${String(row["shapeText"] ?? "")}`.trim(),
      kind,
      dims.map(([, size]) => size),
      dims.map(([name]) => name),
      inputs,
      Number(row["elementBits"] ?? 16),
      Number(row["vector"] ?? 1),
      Number(row["banks"] ?? 32),
      (row["padding"] as [number, number][] | undefined) ?? [],
    );
  }

  get colorings(): Coloring[] {
    return COLORINGS[this.kind];
  }

  /** A colouring of this layout: the one that is asked for, or the first that tells anything apart. */
  coloring(asked: string): Coloring {
    const found = this.colorings.find((one) => one === asked);
    if (found) return found;
    const first = this.colorings[0]!;
    return first === "warp" && this.sizeOf("warp") * this.sizeOf("block") === 1 ? "lane" : first;
  }

  sizeOf(input: string): number {
    return this.inputs.find((one) => one.name === input)?.size ?? 1;
  }

  parts(place: number): Parts {
    const parts: Parts = {};
    let rest = place;
    for (const { name, size } of this.inputs) {
      parts[name] = rest % size;
      rest = Math.floor(rest / size);
    }
    return parts;
  }

  coordinates(element: number): number[] {
    const parts: number[] = [];
    let rest = element;
    for (const size of [...this.shape].reverse()) {
      parts.unshift(rest % size);
      rest = Math.floor(rest / size);
    }
    return parts;
  }

  elementAt(coordinates: number[]): number {
    return coordinates.reduce((index, part, at) => index * this.shape[at]! + part, 0);
  }

  /** (value, how many there are) that a place is coloured by. */
  colorOf(place: number, coloring: Coloring): [number, number] {
    const parts = this.parts(place);
    const line = this.banks * 4;
    switch (coloring) {
      case "warp":
        return [parts["warp"]! + parts["block"]! * this.sizeOf("warp"), this.sizeOf("warp") * this.sizeOf("block")];
      case "vector":
        return [Math.floor(parts["register"]! / this.vector), Math.max(this.sizeOf("register") / this.vector, 1)];
      case "bank":
        return [this.bankOf(parts["offset"]!), this.banks];
      case "line":
        return [
          Math.floor(this.byteOf(parts["offset"]!) / line),
          Math.max(Math.ceil(this.byteOf(this.sizeOf("offset")) / line), 1),
        ];
      default:
        return [parts[coloring]!, this.sizeOf(coloring)];
    }
  }

  /** An offset with the padding before it. */
  private padded(offset: number): number {
    return offset + this.steps.reduce((sum, [interval, pad]) => sum + Math.floor(offset / interval) * pad, 0);
  }

  private memory(): Int32Array {
    const offsets = this.sizeOf("offset");
    const whole = this.padded(offsets - 1) + 1;
    const slots = new Int32Array(whole * (this.places.length / offsets)).fill(-1);
    for (let place = 0; place < this.places.length; place++) {
      slots[Math.floor(place / offsets) * whole + this.padded(place % offsets)] = place;
    }
    return slots;
  }

  byteOf(offset: number): number {
    return (this.padded(offset) * this.elementBits) / 8;
  }

  bankOf(offset: number): number {
    return Math.floor(this.byteOf(offset) / 4) % this.banks;
  }

  /** Whether two neighbours are in one run of a thread's registers, or in one access of memory: they share a label. */
  joined(one: number, next: number): boolean {
    if (next !== one + 1) return false;
    if (this.kind === "register") {
      const registers = this.sizeOf("register");
      return Math.floor(one / registers) === Math.floor(next / registers);
    }
    if (this.kind !== "offset") return false;
    const offset = this.parts(next)["offset"]!;
    const access = Math.max(ACCESS_BITS / this.elementBits, 1);
    return offset % access !== 0 && this.padded(offset) === this.padded(offset - 1) + 1;
  }

  label(place: number, length: number, coloring: Coloring): string {
    const parts = this.parts(place);
    if (this.kind === "offset") return String(this.byteOf(parts["offset"]!));
    if (this.kind === "column") return `${parts["row"]},${parts["column"]}`;
    const warp = coloring !== "warp" && this.sizeOf("warp") > 1 ? `w${parts["warp"]} ` : "";
    const block = parts["block"] ? `C${parts["block"]} ` : "";
    const last = length > 1 ? `–${parts["register"]! + length - 1}` : "";
    return `${block}${warp}t${parts["lane"]} r${parts["register"]}${last}`;
  }

  /** A place in words; what is `known` already is not said. */
  words(place: number, known: Parts = {}): string {
    const parts = this.parts(place);
    if (this.kind === "offset") {
      const offset = parts["offset"]!;
      const block = parts["block"] ? `, CTA ${parts["block"]}` : "";
      return `offset ${offset}, byte ${this.byteOf(offset)}, bank ${this.bankOf(offset)}${block}`;
    }
    if (this.kind === "column") return `lane ${parts["row"]}, column ${parts["column"]} of tensor memory`;
    const names = ["block", "warp", "lane", "register"].filter(
      (name) => !(name in known) && (name !== "block" || this.sizeOf("block") > 1),
    );
    return names.map((name) => `${name === "block" ? "CTA" : name} ${parts[name]}`).join(", ") || "it";
  }

  /** The bits of a place that are set, and their vectors. */
  sum(place: number): string {
    const terms = this.bits
      .filter((_, index) => Math.floor(place / 2 ** index) % 2)
      .map(({ input, bit, vector }) => `  ${input} bit ${bit}: [${vector.join(", ")}]`);
    return terms.length ? `bits that are set, and their vectors:\n${terms.join("\n")}` : "no bit is set: the origin";
  }

  /** The tensor's plane that some leading coordinates choose, a long line folded. */
  plane(lead: number[]): { rows: number; columns: number; element(row: number, column: number): number } {
    const rank = this.shape.length;
    const columns = this.shape[rank - 1] ?? 1;
    const rows = rank > 1 ? this.shape[rank - 2]! : 1;
    const outer = this.shape.slice(0, -2);
    const base = outer.reduce((index, size, at) => index * size + (lead[at] ?? 0), 0) * rows * columns;
    const fold = rows === 1 && columns > MOST_IN_A_LINE ? MOST_IN_A_LINE / 2 : columns;
    return {
      rows: rows === 1 ? Math.ceil(columns / fold) : rows,
      columns: fold,
      element: (row, column) => base + row * fold + column,
    };
  }

  /** Where elements are kept: threads by registers, lines of memory, or lanes by columns; -1 where padding is. */
  hardware(): { rows: number; columns: number; place(row: number, column: number): number | undefined } {
    const { slots } = this;
    if (slots) {
      const line = Math.max((this.banks * 32) / this.elementBits, 1);
      const columns = Math.min(line, slots.length);
      return {
        rows: Math.ceil(slots.length / columns),
        columns,
        place: (row, column) => slots[row * columns + column],
      };
    }
    const columns = this.inputs[0]!.size;
    const count = this.places.length;
    const place = (row: number, column: number) => {
      const found = row * columns + column;
      return found < count ? found : undefined;
    };
    return { rows: count / columns, columns, place };
  }
}

/** The owner of a register: two places of one thread have the same. */
export function threadOf(parts: Parts): string {
  return `${parts["block"] ?? 0}/${parts["warp"] ?? 0}/${parts["lane"] ?? 0}`;
}
