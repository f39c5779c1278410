// A text as the comparison reads it: lines, values, nesting, and keys that no renaming changes; as irscope/ir/body/reader.py.
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

/** A region that is still open, and what its end gives back to the text around. */
interface Region {
  opener: number;
  isIsolated: boolean;
  /** The names of the text around; of a region that is not isolated from it, they are the region's too. */
  outer: Map<string, number>;
  /** The first value that is named within. */
  first: number;
  /** Names of the text around that stand for something else within. */
  hidden: [string, number][];
  /** Labels of the region's own blocks: a branch names no others. */
  labels: string[];
}

// What stands in these sees no value of the text around, so its names say nothing of that; functions are such too.
const ISOLATED = new Set(["builtin.module", "gpu.module", "ttg.warp_specialize.partitions"]);
// "partition0(%a: i32) num_warps(4) {"
const PARTITION = /^partition\d+$/;

/** How many results the operation of a line has. */
function resultsOf(template: string): number {
  const end = template.startsWith(VALUE) ? template.indexOf(" = ") : -1;
  return template.slice(0, Math.max(end, 0)).split(VALUE).length - 1;
}

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
  const isMlir = kind === "mlir";
  let scope = new Map<string, number>();
  const regions: Region[] = [{ opener: -1, isIsolated: true, outer: scope, first: 0, hidden: [], labels: [] }];
  let position = 0;

  const named = (name: string, line: number, key: number): number => {
    const value = names.length;
    scope.set(name, value);
    names.push(name);
    definers.push(line);
    valueKeys.push(key);
    if (name[0] === "^") regions.at(-1)!.labels.push(name);
    return value;
  };

  /** Begins a region; `before` is the one that the same line ended. */
  const open = (line: number, shape: Shape, before: Region | undefined): void => {
    const region: Region = {
      opener: line,
      isIsolated: false,
      outer: scope,
      first: names.length,
      hidden: [],
      labels: [],
    };
    if (isMlir) {
      region.isIsolated =
        before?.isIsolated ?? (shape.isFunction || ISOLATED.has(shape.name) || PARTITION.test(shape.name));
      if (region.isIsolated) scope = new Map();
      else
        for (const label of regions.at(-1)!.labels) {
          const value = scope.get(label);
          if (value !== undefined) region.hidden.push([label, value]);
          scope.delete(label);
        }
    }
    regions.push(region);
  };

  /** Ends the innermost region: its names are forgotten. */
  const close = (): Region => {
    const region = regions.pop()!;
    if (region.isIsolated) {
      scope = region.outer;
    } else if (isMlir) {
      for (let value = region.first; value < names.length; value++) {
        const name = names[value]!;
        // What was used and not defined may be defined further on, in the text around.
        if (scope.get(name) === value && (definers[value]! >= 0 || name[0] === "^")) scope.delete(name);
      }
      for (const [name, value] of region.hidden) scope.set(name, value);
    }
    return region;
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
    const closed = shape.closes && regions.length > 1 ? close() : undefined;
    if (shape.isFunction && !isMlir) scope = new Map();
    openers.push(closed?.opener ?? -1);
    parents.push(regions.at(-1)!.opener);
    if (!shape.holes) {
      deepKeys.push(key);
      values.push(NONE);
      uses.push(NONE);
      if (shape.opens) open(line, shape, closed);
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
    // "%r:2 = scf.for %i = … iter_args(%a = …) {": the results belong to the text around, the others within.
    const results = shape.opens ? resultsOf(shape.template) : defines.length;
    defines.forEach((index, place) => {
      if (place === results) open(line, shape, closed);
      const name = nameAt(position + index);
      const value = scope.get(name);
      // A label may be named before it stands.
      const isNew = value === undefined || (definers[value]! >= 0 && hasVersions);
      if (value === undefined || isNew) {
        const region = regions.at(-1)!;
        if (value !== undefined && value < region.first) region.hidden.push([name, value]);
        slots[index] = named(name, line, deep + place);
        return;
      }
      if (definers[value]! < 0) definers[value] = line;
      valueKeys[value] = deep + place;
      slots[index] = value;
    });
    if (shape.opens && results >= defines.length) open(line, shape, closed);
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
