// The columns of a body for assembly on physical registers; as irscope/ir/body/registers.py has it.
import type { Kind } from "../data/model";
import type { Resolver } from "./aliases";
import type { Columns } from "./body";
import { lineAccess, successors, Webs, type LineAccess } from "./flow";
import { rowHash, textHash } from "./hash";
import { shapeOf, type Shape } from "./tokens";

// CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64)
const FUNCTION = /`\((?<name>[^)]+)\)/;
// R12   UR4   B0
const SASS_REGISTER = /\b(U?[RP]|B)\d+\b/g;
// v12   s[4:7]
const AMD_REGISTER = /\b([vas])(?:\d+\b|\[(\d+):(\d+)\])/g;

/** The text with a hole for each register: behind it the register's file, and the width where the text has one. */
export function registerTemplates(text: string, kind: Kind): string {
  if (kind === "sass") return text.replace(SASS_REGISTER, "\x01$1");
  return text.replace(AMD_REGISTER, (_, file: string, first?: string, last?: string) => {
    // Digits beyond any register's number are no width.
    if (first === undefined || last === undefined || first.length > 4 || last.length > 4) return `\x01${file}`;
    return `\x01${file}${Math.max(Number(last) - Number(first) + 1, 1)}`;
  });
}

// More than any GPU gives a thread; a text may name as many as it likes.
const MOST_REGISTERS = 1000;

/** Reads the templates of a text. */
export function readRegisters(templates: string[], found: string[], kind: Kind, resolver: Resolver): Columns {
  const columns: Columns = {
    shapes: [],
    keys: [],
    deepKeys: [],
    values: [],
    uses: [],
    parents: templates.map(() => -1),
    openers: templates.map(() => -1),
    names: [],
    definers: [],
  };
  const { shapes, keys, deepKeys, names, definers } = columns;
  const own: string[][] = [];
  /** Per line, how many functions began before it. */
  const functions: number[] = [];
  /** Function and label -> its line. */
  const labels = new Map<string, number>();
  readShapes();
  const accesses = shapes.map((shape) => shape.access);
  const lines = registersOfLines();
  const places = [...labels.values()].sort((one, other) => one - other);
  const webs = new Webs(accesses, lines, successors(accesses, targetsOf(), places));
  const byName = new Map<string, number>();
  const ofWeb = new Map<number, number>();
  const ofLabel = new Map<string, number>();
  const valueKeys: number[] = [];
  shapes.forEach((shape, line) => readLine(line, shape, lines[line]!));
  return columns;

  function readShapes(): void {
    const known = new Map<string, [Shape, number]>();
    let position = 0;
    let begun = 0;
    templates.forEach((whole, line) => {
      const bare = whole.trimStart();
      let entry = known.get(bare);
      if (!entry) {
        const shape = shapeOf(bare, kind);
        known.set(bare, (entry = [shape, resolver.key(shape)]));
      }
      const [shape, key] = entry;
      begun += Number(shape.isFunction);
      const names = found.slice(position, position + shape.holes);
      position += shape.holes;
      shapes.push(shape);
      keys.push(shape.access?.isUnknown ? rowHash([key, ...names.map(textHash)]) : key);
      functions.push(begun);
      own.push(names);
      if (!shape.access && shape.defines.length && !labels.has(`${begun} ${names[0]}`)) {
        labels.set(`${begun} ${names[0]}`, line);
      }
    });
  }

  function registersOfLines(): (LineAccess | null)[] {
    const read = (everything: string[]) =>
      accesses.map((access, line) => access && lineAccess(access, own[line]!, everything));
    const lines = read([]);
    if (!accesses.some((access) => access?.isUnknown)) return lines;
    return read(
      [...new Set(lines.flatMap((line) => (line ? [...line.shown, ...line.more] : [])))]
        .sort()
        .slice(0, MOST_REGISTERS),
    );
  }

  /** The line that each line goes to. */
  function targetsOf(): (number | null)[] {
    const called = new Map<string, number>();
    shapes.forEach(({ template }, line) => {
      if (template.endsWith(":")) called.set(template.slice(0, -1), line);
    });
    const anywhere = new Map<string, number>();
    for (const [label, line] of [...labels].reverse()) anywhere.set(label.slice(label.indexOf(" ") + 1), line);
    return shapes.map(({ access, template }, line) => {
      if (access?.flow === "call") return called.get(FUNCTION.exec(template)?.groups!["name"] ?? "") ?? null;
      if (access?.flow !== "branch" && access?.flow !== "jump") return null;
      const label = own[line]!.filter((name) => name.startsWith(".")).at(-1) ?? "";
      return labels.get(`${functions[line]} ${label}`) ?? anywhere.get(label) ?? null;
    });
  }

  function readLine(line: number, shape: Shape, access: LineAccess | null): void {
    const all = access ? [...access.shown, ...access.more] : [];
    const registers = webs.webs[line]!.map((web, index) => valueOf(all[index]!, web));
    const values: number[] = [];
    let taken = 0;
    shape.spans.forEach((span, index) => {
      const name = own[line]![index]!;
      if (name.startsWith(".")) values.push(labelOf(line, name));
      else if (!access) values.push(unwritten(name));
      else {
        values.push(...registers.slice(taken, taken + span));
        taken += span;
      }
    });
    values.push(...registers.slice(taken));
    const isDefined = new Set(shape.defines);
    const used = values.filter((_, place) => !isDefined.has(place));
    const deep = rowHash([keys[line]!, ...used.map((value) => valueKeys[value]!)]);
    shape.defines.forEach((index, place) => (valueKeys[values[index]!] = deep + place));
    deepKeys.push(deep);
    columns.values.push(values);
    columns.uses.push(used);
  }

  function fresh(name: string, definer: number, key: number): number {
    names.push(name);
    definers.push(definer);
    valueKeys.push(key);
    return names.length - 1;
  }

  function kept<Key>(known: Map<Key, number>, key: Key, made: () => number): number {
    const value = known.get(key) ?? made();
    known.set(key, value);
    return value;
  }

  function labelOf(line: number, name: string): number {
    const label = `${functions[line]} ${name}`;
    return kept(ofLabel, label, () => fresh(name, labels.get(label) ?? -1, 0));
  }

  function unwritten(name: string): number {
    return kept(byName, name, () => fresh(name, -1, textHash(name)));
  }

  function valueOf(name: string, web: number | string): number {
    if (typeof web === "string") return unwritten(web);
    return kept(ofWeb, web, () => fresh(name, webs.firstWriters.get(web)!, 0));
  }
}
