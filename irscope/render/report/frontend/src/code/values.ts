// Values, registers and aliases in a text: where one is defined, and where it is used.
import type { Kind } from "../data/model";
import { bodyOf } from "../data/comparing";

const NAMES: Partial<Record<Kind, RegExp>> = {
  mlir: /[%@^][\w$.-]+|[#!][A-Za-z_$][\w$]*/g,
  llvm: /[%@][\w$.-]+|![\w.]+|#\d+/g,
  ptx: /%[a-z]+\w*(?:\.[xyz])?|\$L\w+/g,
  sass: /\b(?:U?R\d+|U?P\d+)\b|\.L_\w+/g,
  amdgcn: /\b[vsa](?:\d+\b|\[\d+:\d+\])|\.L\w+/g,
  python: /[A-Za-z_]\w*/g,
};

export interface Value {
  name: string;
  /** 1-based lines. */
  definitions: number[];
  uses: number[];
}

/** The name that stands at a column of a line; undefined where there is none. */
export function nameAt(line: string, column: number, kind: Kind): string | undefined {
  const pattern = NAMES[kind];
  if (!pattern || kind === "python") return undefined;
  for (const match of line.matchAll(pattern)) {
    if (column >= match.index && column <= match.index + match[0].length) return match[0];
  }
  return undefined;
}

/** All columns of a name in a line. */
export function placesOf(line: string, name: string, kind: Kind): number[] {
  const pattern = NAMES[kind];
  if (!pattern || !line.includes(name)) return [];
  return [...line.matchAll(pattern)].filter((match) => match[0] === name).map((match) => match.index);
}

/** Where the value, register or alias that a name stands for at a line is defined and used. */
export function valueIn(lines: string[], name: string, kind: Kind, row: number): Value {
  return (kind === "mlir" ? scopedValue(lines, name, row) : undefined) ?? namedValue(lines, name, kind, row);
}

/** By the scopes of MLIR, in which regions side by side use one name for several values. */
function scopedValue(lines: string[], name: string, row: number): Value | undefined {
  const body = bodyOf(lines, "mlir");
  const own = body.values[body.numbers.indexOf(row)]?.find((value) => body.names[value] === name);
  if (own === undefined) return undefined;
  const definer = body.definers[own]!;
  return {
    name,
    definitions: definer < 0 ? [] : [body.numbers[definer]!],
    uses: body.numbers.filter((_, line) => body.uses[line]!.includes(own)),
  };
}

/** By the name alone, in LLVM IR and PTX within the function that it stands in. */
function namedValue(lines: string[], name: string, kind: Kind, row: number): Value {
  const [from, to] = /^[@#!]/.test(name) ? [0, lines.length] : scope(lines, kind, row - 1);
  const value: Value = { name, definitions: [], uses: [] };
  for (let at = from; at < to; at++) {
    const line = lines[at]!;
    const places = placesOf(line, name, kind);
    if (!places.length) continue;
    (places.some((place) => defines(line, place, name, kind)) ? value.definitions : value.uses).push(at + 1);
  }
  return value;
}

const FUNCTION: Partial<Record<Kind, RegExp>> = {
  llvm: /^define\b/,
  ptx: /\.(?:entry|func)\b/,
};

function scope(lines: string[], kind: Kind, index: number): [number, number] {
  const head = FUNCTION[kind];
  if (!head) return [0, lines.length];
  let from = index;
  while (from > 0 && !head.test(lines[from]!)) from--;
  let to = index + 1;
  while (to < lines.length && !head.test(lines[to]!)) to++;
  return [from, to];
}

function defines(line: string, place: number, name: string, kind: Kind): boolean {
  const before = line.slice(0, place);
  const after = line.slice(place + name.length);
  if (kind === "mlir") return /^[#!]/.test(name) && !before && after.startsWith(" =");
  if (kind === "llvm") return !before.trim() ? /^ = |^:/.test(after) : /^define\b/.test(before) && name[0] === "%";
  if (kind === "ptx" || kind === "amdgcn")
    return (
      /^\s*(?:@!?%\w+\s+)?[\w.:]+\s+\{?(?:[%\w[\]:]+, )*$/.test(before) && !/^\s*(?:st|red|@?bra|bar)\b/.test(before)
    );
  if (kind === "sass")
    return /\s[A-Z][\w.]+ (?:U?P\d+, )?$/.test(before) && !/\b(?:ST|BRA|EXIT|BAR)\w*(?:\.\w+)* $/.test(before);
  return false;
}
