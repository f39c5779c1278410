// Puts operations that only changed places among independent ones back to where the left side has them; as
// irscope/analysis/diff/reorder.py does.
import type { Body } from "./body";
import { ANY, effectOf, NONE, READS } from "./effects";
import { Matching } from "./matching";
import { regionEnds } from "./regions";

const KINDS = ["mlir", "llvm", "ptx"];
const SSA = ["mlir", "llvm"];
const ROUNDS = 3;

/** The matching of two bodies, the right one in the left one's order as far as order says nothing. */
export function matched(left: Body, right: Body): Matching {
  let matching = new Matching(left, right);
  const graph = SSA.includes(left.kind) && !isEven(matching) ? sameGraph(left, right) : undefined;
  if (graph) {
    const even = new Matching(left, permuted(right, graph));
    if (isEven(even)) return even;
  }
  for (let round = 0; round < ROUNDS; round++) {
    const order = KINDS.includes(left.kind) && matching.moved.size ? new Reordering(matching).order() : undefined;
    if (!order) break;
    matching = new Matching(left, permuted(matching.right, order));
  }
  return matching;
}

const isEven = (matching: Matching): boolean =>
  !matching.moved.size && matching.equal.every(Boolean) && !matching.toRight.includes(-1);

/**
 * The right lines in the left one's order, where both are one graph of operations; undefined where they are not.
 * What keeps its place is paired in its order, and then what each pair reads: so of equal computations each gets the
 * partner that its readers have.
 */
function sameGraph(left: Body, right: Body): number[] | undefined {
  const count = left.lines.length;
  const keys = [...right.keys].sort((one, other) => one - other);
  if (right.keys.length !== count || [...left.keys].sort((a, b) => a - b).some((key, at) => key !== keys[at]))
    return undefined;
  const partner = new Array<number>(count).fill(-1);
  const taken = new Array<boolean>(count).fill(false);
  const [ours, theirs] = [fixedLines(left), fixedLines(right)];
  const unread = new Map<number, number[]>();
  right.deepKeys.forEach((key, line) => push(unread, key, line));
  const waiting: [number, number][] =
    ours.length === theirs.length ? ours.map((line, at): [number, number] => [line, theirs[at]!]) : [];
  const sources = (line: number, other: number): [number, number][] =>
    left.uses[line]!.slice(0, right.uses[other]!.length).map((value, at) => [
      left.definers[value]!,
      right.definers[right.uses[other]![at]!]!,
    ]);
  const agrees = (line: number, other: number): boolean =>
    sources(line, other).every(([one, two]) => one < 0 || two < 0 || partner[one] === (taken[two] ? two : -1));
  for (let last = count - 1; last >= -1; last--) {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [line, other] = next;
      if (partner[line] === other) continue;
      if (partner[line]! >= 0 || taken[other] || left.keys[line] !== right.keys[other]) return undefined;
      partner[line] = other;
      taken[other] = true;
      for (const [one, two] of sources(line, other)) if (one >= 0 && two >= 0) waiting.push([one, two]);
    }
    if (last >= 0 && partner[last]! < 0) {
      // Of equal operations that nothing reads, the one that reads the partners of what this one reads.
      const others = unread.get(left.deepKeys[last]!) ?? [];
      const other = [...others].reverse().find((one) => !taken[one] && agrees(last, one));
      if (other === undefined) return undefined;
      others.splice(others.indexOf(other), 1);
      waiting.push([last, other]);
    }
  }
  return partner.includes(-1) || !keepsPlaces(left, right, partner) ? undefined : partner;
}

function fixedLines(body: Body): number[] {
  return body.shapes.flatMap((shape, line) =>
    shape.opens || shape.closes || shape.name === "^" || effectOf(shape, body.kind) === ANY ? [line] : [],
  );
}

/** Whether each line stays in its block, and each read of memory between the same effects. */
function keepsPlaces(left: Body, right: Body, partner: number[]): boolean {
  const theirs = blocksOf(right, true);
  return blocksOf(left, true).every((block, line) =>
    block.every((one, place) => (one >= 0 ? partner[one] : -1) === theirs[partner[line]!]![place]),
  );
}

type Block = [parent: number, label: number];

class Reordering {
  private readonly left: Body;
  private readonly toRight: number[];
  private readonly count: number;
  private readonly ends: Map<number, number>;
  private readonly rightEnds: Map<number, number>;
  private readonly blocks: Block[];
  private readonly rightBlocks: Block[];
  private readonly definers = new Map<number, number[]>();
  private readonly readers = new Map<number, number[]>();
  /** Line that opens a region -> [line, effect] of the operations in it that have one. */
  private readonly effects = new Map<number, [number, number][]>();

  constructor(private readonly matching: Matching) {
    this.left = matching.left;
    this.toRight = matching.toRight;
    this.count = matching.right.lines.length;
    this.ends = regionEnds(matching.left);
    this.rightEnds = regionEnds(matching.right);
    this.blocks = blocksOf(matching.left);
    this.rightBlocks = blocksOf(matching.right);
  }

  /** The right lines in their new order; undefined where that is the present one. */
  order(): number[] | undefined {
    const moves = [...this.matching.moved].sort((one, other) => one - other).filter((line) => this.mayMove(line));
    if (!moves.length) return undefined;
    this.index();
    const free = new Set(moves.filter((line) => this.isFree(line)));
    return free.size ? this.spliced(free) : undefined;
  }

  private mayMove(line: number): boolean {
    const partner = this.toRight[line]!;
    const shape = this.left.shapes[line]!;
    if (shape.closes || shape.name === "^" || !this.matching.equal[partner] || !this.sameBlock(line)) return false;
    return (this.rightEnds.get(partner) ?? partner) < this.count;
  }

  private sameBlock(line: number): boolean {
    const theirs = this.rightBlocks[this.toRight[line]!]!;
    return this.blocks[line]!.every((one, place) =>
      one < 0 ? theirs[place]! < 0 : this.toRight[one] === theirs[place],
    );
  }

  private index(): void {
    const { left } = this;
    left.shapes.forEach((shape, line) => {
      for (const place of shape.defines) push(this.definers, left.values[line]![place]!, line);
      for (const value of left.uses[line]!) push(this.readers, value, line);
      const effect = shape.closes ? NONE : this.effect(line);
      if (effect !== NONE) push(this.effects, left.parents[line]!, [line, effect]);
    });
  }

  private effect(line: number): number {
    const shape = this.left.shapes[line]!;
    if (shape.isFunction || !shape.opens) return effectOf(shape, this.left.kind);
    const inside = this.left.shapes.slice(line, this.ends.get(line) ?? line);
    const own = inside.filter((one) => !one.closes && one.name !== "^").map((one) => effectOf(one, this.left.kind));
    return own.length ? own.reduce((one, other) => Math.max(one, other)) : ANY;
  }

  /** Whether nothing that a line changed places with depends on it, or it on that. */
  private isFree(line: number): boolean {
    const { left } = this;
    const passes = (others: number[] | undefined) => (others ?? []).some((other) => this.passed(line, other));
    for (let one = line; one <= (this.ends.get(line) ?? line); one++) {
      for (const place of left.shapes[one]!.defines) {
        const value = left.values[one]![place]!;
        if (passes(this.definers.get(value)) || passes(this.readers.get(value))) return false;
      }
      if (left.uses[one]!.some((value) => passes(this.definers.get(value)))) return false;
    }
    const effect = this.effect(line);
    if (effect === NONE) return true;
    const others = this.effects.get(left.parents[line]!) ?? [];
    return !others.some(([other, theirs]) => (effect === ANY || theirs === ANY) && this.passed(line, other));
  }

  /** Whether a line stands on the other side of another one, or of what holds that one in the same region. */
  private passed(line: number, other: number): boolean {
    const { parents } = this.left;
    while (other >= 0 && parents[other] !== parents[line]) other = parents[other]!;
    if (other < 0 || this.toRight[other]! < 0) return false;
    return other < line !== this.toRight[other]! < this.toRight[line]!;
  }

  private spliced(free: Set<number>): number[] | undefined {
    const { count, toRight } = this;
    // A ring: its last item is the end, and the beginning.
    const after = Array.from({ length: count + 1 }, (_, line) => (line < count ? line + 1 : 0));
    const before = Array.from({ length: count + 1 }, (_, line) => (line ? line - 1 : count));
    const last = new Map<string, number>();
    toRight.forEach((partner, line) => {
      if (partner < 0 || this.left.shapes[line]!.closes) return;
      const [parent, label] = this.blocks[line]!;
      const block = `${parent} ${label}`;
      const end = this.rightEnds.get(partner) ?? partner;
      if (free.has(line)) {
        const start = label >= 0 ? toRight[label]! : parent >= 0 ? toRight[parent]! : count;
        const place = last.get(block) ?? start;
        if (before[partner] !== place) {
          after[before[partner]!] = after[end]!;
          before[after[end]!] = before[partner]!;
          after[end] = after[place]!;
          before[after[place]!] = end;
          after[place] = partner;
          before[partner] = place;
        }
      } else if (this.matching.moved.has(line) || end >= count || !this.sameBlock(line)) return;
      last.set(block, end);
    });
    const order: number[] = [];
    for (let line = after[count]!; line !== count; line = after[line]!) order.push(line);
    return order.every((line, place) => line === place) ? undefined : order;
  }
}

function push<K, V>(rows: Map<K, V[]>, key: K, value: V): void {
  const row = rows.get(key);
  if (row) row.push(value);
  else rows.set(key, [value]);
}

/**
 * For each line, what opened the region it stands in, and the label of its block; -1 for none. With `reads`, what reads
 * memory has the last effect before it in place of the label.
 */
function blocksOf(body: Body, reads = false): Block[] {
  const labels = new Map<number, number>();
  const effects = new Map<number, number>();
  return body.parents.map((parent, line) => {
    const shape = body.shapes[line]!;
    const effect = reads ? effectOf(shape, body.kind) : NONE;
    const block: Block = [parent, (effect === READS ? effects : labels).get(parent) ?? -1];
    if (shape.name === "^") labels.set(parent, line);
    if (shape.name === "^" || shape.opens || effect === ANY) effects.set(parent, line);
    return block;
  });
}

/** A body with its lines in another order. */
function permuted(body: Body, order: number[]): Body {
  const place = new Map([[-1, -1], ...order.map((line, index): [number, number] => [line, index])]);
  const sorted = <T>(rows: T[]): T[] => order.map((line) => rows[line]!);
  const placed = (rows: number[]): number[] => rows.map((line) => place.get(line)!);
  return {
    ...body,
    lines: sorted(body.lines),
    numbers: sorted(body.numbers),
    shapes: sorted(body.shapes),
    keys: sorted(body.keys),
    deepKeys: sorted(body.deepKeys),
    values: sorted(body.values),
    uses: sorted(body.uses),
    parents: placed(sorted(body.parents)),
    openers: placed(sorted(body.openers)),
    definers: placed(body.definers),
  };
}
