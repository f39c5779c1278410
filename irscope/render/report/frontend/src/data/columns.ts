// A text as its lines without locations, and what stands beside each; and which names its lines define. Python splits
// texts and finds the names: irscope/render/report/texts.py.
import { runsOf } from "./runs";

const [BESIDE, HIDDEN, OTHER] = ["\x01", "\x02", "\x03"] as const;

/** A name, in every language. */
const TOKEN = /[%^#!@$.]?\w[\w$-]*(?:\[\d+:\d+\])?/g;

/** The lines of a text without locations. */
export class Plain {
  /** The 1-based line of the text that each is. */
  readonly numbers: number[];
  private places: Int32Array | undefined;

  constructor(
    readonly lines: string[],
    margins?: string[],
  ) {
    this.numbers = [];
    if (margins) {
      for (let at = 0; at < margins.length; at++) if (margins[at]![0] !== HIDDEN) this.numbers.push(at + 1);
    } else for (let at = 1; at <= lines.length; at++) this.numbers.push(at);
  }

  /** The line that a line of the text is without locations; undefined where it is left out. */
  at(number: number): string | undefined {
    const place = this.placeOf(number);
    return place < 0 ? undefined : this.lines[place];
  }

  /** Its place among these lines, -1 for none. */
  placeOf(number: number): number {
    if (!this.places) {
      this.places = new Int32Array((this.numbers.at(-1) ?? 0) + 1).fill(-1);
      this.numbers.forEach((one, place) => (this.places![one] = place));
    }
    return this.places[number] ?? -1;
  }
}

/** The lines of a text, of its lines without locations and its margins. */
export function wholeOf(plain: string[], margins: string[]): string[] {
  let next = 0;
  return margins.map((margin) => {
    if (margin[0] === HIDDEN) return margin.slice(1);
    const line = plain[next++] ?? "";
    if (margin[0] === OTHER) return margin.slice(1);
    const at = margin.indexOf(BESIDE);
    return at < 0 ? line + margin : margin.slice(0, at) + line + margin.slice(at + 1);
  });
}

/** What stands before a line and behind it, which is left out of the plain one. */
export function marginsOf(line: string, plain: string | undefined): [string, string] {
  if (plain === undefined) return ["", ""];
  if (line.startsWith(plain)) return ["", line.slice(plain.length)];
  return line.endsWith(plain) ? [line.slice(0, line.length - plain.length), ""] : ["", ""];
}

/** The names of a line, and the columns where they begin. */
export function tokensOf(line: string): [string, number][] {
  return Array.from(line.matchAll(TOKEN), (match) => [match[0], match.index]);
}

/** A line whose names are replaced by others. */
export function renamed(line: string, names: ReadonlyMap<string, string>): string {
  return names.size ? line.replace(TOKEN, (name) => names.get(name) ?? name) : line;
}

export interface PackedValues {
  /** Of each line without locations the tokens that it defines, as (tokens, lines) again and again. */
  definitions: (number | number[])[];
  /** (name, for each value of that name its lines of definition and its lines of use). */
  scopes: [string, [number[], number[]][]][];
}

export interface Value {
  name: string;
  /** 1-based lines. */
  definitions: number[];
  uses: number[];
}

/** The values, registers, labels and aliases of a text. */
export class Values {
  private readonly defined: (number | number[])[];
  private readonly scopes: Map<string, [number[], number[]][]>;
  private readonly names = new Set<string>();

  constructor(
    private readonly text: Plain,
    packed: PackedValues,
  ) {
    this.defined = runsOf(packed.definitions);
    this.scopes = new Map(packed.scopes);
    text.lines.forEach((line, place) => this.definedAt(line, place).forEach((name) => this.names.add(name)));
  }

  /** The name that stands at a column of a line; undefined where there is none. */
  nameAt(line: string, column: number): string | undefined {
    const found = tokensOf(line).find(([name, from]) => column >= from && column <= from + name.length)?.[0];
    return found !== undefined && (/^[%^#!@$]/.test(found) || this.names.has(found)) ? found : undefined;
  }

  /** Where the value that a name stands for at a line is defined and used. */
  of(name: string, number: number): Value {
    const scope = this.scopes.get(name)?.find((lines) => lines.some((own) => own.includes(number)));
    if (scope) return { name, definitions: scope[0], uses: scope[1] };
    const value: Value = { name, definitions: [], uses: [] };
    this.text.lines.forEach((line, place) => {
      if (!line.includes(name) || !tokensOf(line).some(([one]) => one === name)) return;
      const isDefinition = this.definedAt(line, place).includes(name);
      (isDefinition ? value.definitions : value.uses).push(this.text.numbers[place]!);
    });
    return value;
  }

  private definedAt(line: string, place: number): string[] {
    const tokens = this.defined[place] ?? -1;
    if (tokens === -1) return [];
    const all = tokensOf(line);
    return (typeof tokens === "number" ? [tokens] : tokens).map((token) => all[token]?.[0] ?? "");
  }
}
