// Alias definitions and what the aliases stand for; as irscope/ir/body/aliases.py has it.
import type { Kind } from "../data/model";
import { textHash } from "./hash";
import { syntaxOf, type Shape, type Syntax } from "./tokens";

const LONGEST = 20_000;
// ".reg .b32 %r<108>;": how many registers PTX declares is a matter of numbering.
const REGISTER_COUNT = /<\d+>/g;

export interface Definition {
  /** With its sign: `#blocked1`. */
  name: string;
  value: string;
  line: string;
  number: number;
}

export interface Split {
  head: Definition[];
  tail: Definition[];
  /** Which lines define nothing. */
  rest: number[];
}

/** The definitions before the first other line, those behind it, and the other lines. */
export function splitDefinitions(lines: string[], syntax: Syntax): Split {
  const found: Split = { head: [], tail: [], rest: [] };
  const { definition } = syntax;
  lines.forEach((line, number) => {
    const groups = definition && "#!a".includes(line[0]!) ? definition.exec(line)?.groups : undefined;
    if (!groups) found.rest.push(number);
    else {
      const one = { name: groups["name"]!, value: groups["value"] ?? "", line, number };
      (found.rest.length ? found.tail : found.head).push(one);
    }
  });
  return found;
}

/** Says what an alias stands for, and keys templates by it. */
export class Resolver {
  private readonly alias: RegExp | null;
  private readonly definitions: Map<string, Definition>;
  private readonly resolved = new Map<string, string>();
  private readonly named = new Set<string>();

  constructor(
    private readonly kind: Kind,
    definitions: Definition[],
  ) {
    this.alias = syntaxOf(kind).alias;
    this.definitions = new Map(definitions.map((one) => [one.name, one]));
  }

  /** The text an alias stands for, its own aliases resolved; the name itself where nothing defines it. */
  resolve(name: string): string {
    if (!this.alias || !this.definitions.has(name)) return name;
    // A stack of our own: a hostile text may nest aliases as deep as it likes, and metadata may name itself.
    const stack = [name];
    const visiting = new Set<string>();
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      if (this.resolved.has(top)) {
        stack.pop();
        continue;
      }
      const { value } = this.definitions.get(top)!;
      const missing = (value.match(this.alias) ?? []).filter(
        (other) => other !== top && this.definitions.has(other) && !this.resolved.has(other) && !visiting.has(other),
      );
      if (missing.length) {
        visiting.add(top);
        stack.push(...missing);
        continue;
      }
      const text = value.replace(this.alias, (one) => this.resolvedOrCycle(one));
      // Doubling aliases would fill the memory: beyond this size, the hash says whether they are equal.
      this.resolved.set(top, text.length > LONGEST ? `${text.slice(0, 80)}…${textHash(text)}` : text);
      visiting.delete(top);
      stack.pop();
    }
    return this.resolved.get(name)!;
  }

  /** The key of all lines of that shape: equal where only names differ. */
  key(shape: Shape): number {
    let { template } = shape;
    if (this.kind === "ptx" && template.startsWith(".reg")) template = template.replace(REGISTER_COUNT, "<>");
    if (this.alias && (template.includes("#") || template.includes("!"))) {
      template = template.replace(this.alias, (name) => {
        this.named.add(name);
        return this.resolve(name);
      });
    }
    return textHash(template);
  }

  /** The aliases that the keyed shapes name, and those that these name in turn. */
  used(): Set<string> {
    const waiting = [...this.named].filter((name) => this.definitions.has(name));
    const found = new Set(waiting);
    for (let name = waiting.pop(); name !== undefined && this.alias; name = waiting.pop()) {
      for (const other of this.definitions.get(name)!.value.match(this.alias) ?? []) {
        if (found.has(other) || !this.definitions.has(other)) continue;
        found.add(other);
        waiting.push(other);
      }
    }
    return found;
  }

  private resolvedOrCycle(name: string): string {
    return this.resolved.get(name) ?? (this.definitions.has(name) ? `${name[0]}<itself>` : name);
  }
}
