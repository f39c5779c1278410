// A text as the comparison reads it: lines, values, nesting, and keys that no renaming changes; as irscope/ir/body.py.
import type { Kind } from "../data/model";
import { Resolver, splitDefinitions, type Definition } from "./aliases";
import { clean } from "./clean";
import { rowHash } from "./hash";
import { readRegisters, registerTemplates } from "./physical";
import { LABEL, shapeOf, syntaxOf, VALUE, type Shape, type Syntax } from "./tokens";

/** One side of a comparison, column by column; every list has one item a line, unless said otherwise. */
export interface Body {
  kind: Kind;
  lines: string[];
  /** 1-based line numbers in the text. */
  numbers: number[];
  head: Definition[];
  tail: Definition[];
  shapes: Shape[];
  /** Of the line alone: its template, aliases resolved. */
  keys: number[];
  /** Of the line and all that its operands come from. */
  deepKeys: number[];
  /** The values in the line's holes, then those of registers it does not name; a value is its index in `names`. */
  values: number[][];
  /** Those that the line does not define. */
  uses: number[][];
  /** The line that opened the region this line stands in; -1 at the top. */
  parents: number[];
  /** For a line that closes a region, the line that opened it; otherwise -1. */
  openers: number[];
  /** One item a value: how it is written. */
  names: string[];
  /** One item a value: the first line that defines it; -1 where none does. */
  definers: number[];
  resolver: Resolver;
  syntax: Syntax;
}

const HOLES = /[\x01\x02\r]/g;

export function readBody(text: string, kind: Kind): Body {
  const syntax = syntaxOf(kind);
  let { lines, numbers } = clean(text.replace(HOLES, ""), kind);
  const { head, tail, rest } = splitDefinitions(lines, syntax);
  const all = numbers;
  if (rest.length !== lines.length) {
    numbers = rest.map((index) => all[index]!);
    lines = rest.map((index) => lines[index]!);
  }
  const resolver = new Resolver(kind, [...head, ...tail]);
  const columns = read(lines, kind, syntax, resolver);
  // Triton prints aliases that nothing names; without locations, those of locations are of that kind.
  const used = resolver.used();
  const kept = (rows: Definition[]) =>
    rows.filter((one) => used.has(one.name)).map((one) => ({ ...one, number: all[one.number]! }));
  return { kind, lines, numbers, head: kept(head), tail: kept(tail), resolver, syntax, ...columns };
}

export type Columns = Pick<
  Body,
  "shapes" | "keys" | "deepKeys" | "values" | "uses" | "parents" | "openers" | "names" | "definers"
>;

const NONE: number[] = [];

/** Walks the templates once. */
function read(lines: string[], kind: Kind, syntax: Syntax, resolver: Resolver): Columns {
  const joined = lines.join("\n");
  const found = joined.match(syntax.name) ?? [];
  let template = syntax.isVirtual ? joined.replace(syntax.value, VALUE) : registerTemplates(joined, kind);
  if (syntax.label) template = template.replace(syntax.label, LABEL);
  const templates = lines.length ? template.split("\n") : [];
  const isLlvm = kind === "llvm";
  const { hasVersions } = syntax;
  if (!syntax.isVirtual) return readRegisters(templates, found, kind, resolver);
  const columns: Columns = {
    shapes: [],
    keys: [],
    deepKeys: [],
    values: [],
    uses: [],
    parents: [],
    openers: [],
    names: [],
    definers: [],
  };
  const { shapes, keys, deepKeys, values, uses, parents, openers, names, definers } = columns;
  const valueKeys: number[] = [];
  const known = new Map<string, [Shape, number]>();
  let scope = new Map<string, number>();
  const stack: number[] = [];
  let position = 0;

  const named = (name: string, line: number, key: number): number => {
    const value = names.length;
    scope.set(name, value);
    names.push(name);
    definers.push(line);
    valueKeys.push(key);
    return value;
  };

  templates.forEach((whole, line) => {
    const bare = whole.trimStart();
    let entry = known.get(bare);
    if (!entry) {
      const shape = shapeOf(bare, kind);
      known.set(bare, (entry = [shape, resolver.key(shape)]));
    }
    const [shape, key] = entry;
    shapes.push(shape);
    keys.push(key);
    if (shape.isFunction) scope = new Map();
    openers.push((shape.closes ? stack.pop() : undefined) ?? -1);
    parents.push(stack.at(-1) ?? -1);
    if (shape.opens) stack.push(line);
    if (!shape.holes) {
      deepKeys.push(key);
      values.push(NONE);
      uses.push(NONE);
      return;
    }
    const { defines, holes } = shape;
    const slots = new Array<number>(holes).fill(-1);
    const used: number[] = [];
    const row = [key];
    let next = 0;
    for (let index = 0; index < holes; index++) {
      if (defines[next] === index) {
        next++;
        continue;
      }
      const name = nameAt(position + index);
      // Used before it is defined (a label, a phi), or never defined.
      const value = scope.get(name) ?? named(name, -1, 0);
      slots[index] = value;
      used.push(value);
      row.push(valueKeys[value]!);
    }
    const deep = rowHash(row);
    defines.forEach((index, place) => {
      const name = nameAt(position + index);
      const value = scope.get(name);
      // A label may be named before it stands.
      const isNew = value === undefined || (definers[value]! >= 0 && hasVersions);
      if (value === undefined || isNew) {
        slots[index] = named(name, line, deep + place);
        return;
      }
      if (definers[value]! < 0) definers[value] = line;
      valueKeys[value] = deep + place;
      slots[index] = value;
    });
    deepKeys.push(deep);
    values.push(slots);
    uses.push(used);
    position += holes;
    if (shape.isFunction && isLlvm) {
      // "define void @f(ptr %0, i32 %1) {" has an entry block that is called %2 without a label.
      const numbered = slots.filter((value) => /^%\d+$/.test(names[value]!)).length;
      named(`%${numbered}`, line, 0);
    }
  });
  return columns;

  function nameAt(index: number): string {
    const name = found[index]!;
    // In LLVM IR the label "12:" and the value "%12" are one name.
    return isLlvm && name[0] !== "%" ? `%${name}` : name;
  }
}
