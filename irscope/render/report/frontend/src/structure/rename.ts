// Gives the right side of a comparison the left side's names; as irscope/analysis/diff/rename.py does.
import type { Definition } from "./aliases";
import { append, type Pair } from "./anchors";
import type { Body } from "./body";
import type { Matching } from "./matching";
import { joinedName } from "./registers";

/** The lines of both sides as they are shown: alias definitions, the body, and the definitions behind it. */
export interface Display {
  left: string[];
  right: string[];
  leftNumbers: number[];
  rightNumbers: number[];
  /** (left line, right line) of the definitions before the body, -1 where a side has none. */
  head: Pair[];
  tail: Pair[];
  /** Where the bodies begin. */
  leftStart: number;
  rightStart: number;
}

export function renamedRight(matching: Matching): Display {
  const { left, right } = matching;
  const names = new Names(matching);
  const head = ordered(left.head, right.head, names);
  const tail = ordered(left.tail, right.tail, names);
  const body = right.lines.map((_, line) => names.line(line));
  const leftTail = left.head.length + left.lines.length;
  const rightTail = head.lines.length + body.length;
  return {
    left: [...left.head.map((one) => one.line), ...left.lines, ...left.tail.map((one) => one.line)],
    right: [...head.lines, ...body, ...tail.lines],
    leftNumbers: [...left.head.map((one) => one.number), ...left.numbers, ...left.tail.map((one) => one.number)],
    rightNumbers: [...head.numbers, ...right.numbers, ...tail.numbers],
    head: head.rows,
    tail: tail.rows.map(([one, other]) => [one < 0 ? -1 : one + leftTail, other < 0 ? -1 : other + rightTail]),
    leftStart: left.head.length,
    rightStart: head.lines.length,
  };
}

interface Ordered {
  rows: Pair[];
  lines: string[];
  numbers: number[];
}

/** The left text's order, then what only the right text has. A definition counts where the left text has it. */
function ordered(ours: Definition[], theirs: Definition[], names: Names): Ordered {
  const found: Ordered = { rows: [], lines: [], numbers: [] };
  ours.forEach((definition, index) => {
    const partner = names.definitionOf.get(definition.name);
    found.rows.push([index, partner ? found.lines.length : -1]);
    if (!partner) return;
    found.lines.push(definition.line);
    found.numbers.push(partner.number);
  });
  for (const definition of theirs) {
    if (names.matched.has(definition.name)) continue;
    found.rows.push([-1, found.lines.length]);
    found.lines.push(names.definition(definition));
    found.numbers.push(definition.number);
  }
  return found;
}

/** What everything of the right side is called. */
class Names {
  /** Left alias -> the right definition that says the same. */
  readonly definitionOf = new Map<string, Definition>();
  /** Right alias -> the left one that says the same. */
  readonly matched = new Map<string, string>();
  private readonly aliasNames: Map<string, string>;
  private readonly renamesAliases: boolean;
  private readonly ofValue: (string | undefined)[] = [];
  private readonly taken: Set<string>;
  private readonly own: Set<string>;
  /** How many new names were made of a name. */
  private readonly fresh = new Map<string, number>();

  constructor(private readonly matching: Matching) {
    const { left, right, valueOf } = matching;
    this.taken = new Set(valueOf.filter((value) => value >= 0).map((value) => left.names[value]!));
    this.own = new Set(right.names);
    this.matchAliases(left, right);
    this.aliasNames = new Map(this.matched);
    this.nameAliases(left, right);
    this.renamesAliases = [...this.aliasNames].some(([old, name]) => old !== name);
  }

  /** A definition of the right side under its new name. */
  definition({ line }: Definition): string {
    const { alias } = this.matching.right.syntax;
    return alias ? line.replace(alias, (name) => this.aliasNames.get(name) ?? name) : line;
  }

  /** A line of the right body as it is shown. */
  line(number: number): string {
    const { left, right, toLeft, equal } = this.matching;
    const own = right.lines[number]!;
    const partner = toLeft[number]!;
    if (partner >= 0 && equal[number]) {
      const other = left.lines[partner]!;
      if (own === other) return other;
      const [indent, otherIndent] = [indentOf(own), indentOf(other)];
      return indent === otherIndent ? other : own.slice(0, indent) + other.slice(otherIndent);
    }
    const values = right.values[number]!;
    const renamed = values.some((value) => this.value(value) !== right.names[value]);
    if (!renamed && !(this.renamesAliases && (own.includes("#") || own.includes("!")))) return own;
    const spans = right.shapes[number]!.spans;
    let next = 0;
    let hole = 0;
    return own.replace(right.syntax.any, (found) => {
      if (right.syntax.alias && (found[0] === "#" || found[0] === "!")) return this.aliasNames.get(found) ?? found;
      const span = spans[hole++] ?? 0;
      const names = values.slice(next, (next += span)).map((value) => this.value(value));
      if (!names.length) return found;
      const name = right.syntax.isVirtual ? names[0]! : joinedName(names, found);
      // In LLVM IR a label stands without the sign where it is defined.
      return found[0] === name[0] || name[0] !== "%" ? name : name.slice(1);
    });
  }

  private matchAliases(left: Body, right: Body): void {
    const waiting = new Map<string, string[]>();
    for (const { name } of [...left.head, ...left.tail].reverse()) {
      append(waiting, name[0] + left.resolver.resolve(name), name);
    }
    for (const definition of [...right.head, ...right.tail]) {
      const name = waiting.get(definition.name[0] + right.resolver.resolve(definition.name))?.pop();
      if (name === undefined) continue;
      this.matched.set(definition.name, name);
      this.definitionOf.set(name, definition);
    }
  }

  private nameAliases(left: Body, right: Body): void {
    const taken = new Set([...left.head, ...left.tail].map((one) => one.name));
    for (const definition of [...right.head, ...right.tail]) {
      if (this.aliasNames.has(definition.name)) continue;
      let { name } = definition;
      const stem = name.replace(/\d+$/, "");
      while (taken.has(name)) name = stem + this.count(stem);
      taken.add(name);
      this.aliasNames.set(definition.name, name);
    }
  }

  private count(name: string): number {
    const count = (this.fresh.get(name) ?? 0) + 1;
    this.fresh.set(name, count);
    return count;
  }

  private value(value: number): string {
    return (this.ofValue[value] ??= this.named(value));
  }

  private named(value: number): string {
    const { left, right, valueOf } = this.matching;
    const partner = valueOf[value]!;
    if (partner >= 0) return left.names[partner]!;
    const name = right.names[value]!;
    if (!this.taken.has(name) || !right.syntax.isVirtual) return name;
    const [sign, rest] = /^[\p{L}\p{N}]/u.test(name) ? ["", name] : [name[0]!, name.slice(1)];
    for (;;) {
      const count = this.count(name);
      const number = count === 1 ? "" : String(count);
      const fresh = /^\d/.test(rest) ? `${sign}new${number}_${rest}` : `${name}_new${number}`;
      if (this.taken.has(fresh) || this.own.has(fresh)) continue;
      this.taken.add(fresh);
      return fresh;
    }
  }
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
