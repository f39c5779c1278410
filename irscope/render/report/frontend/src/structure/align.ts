// Aligns two sequences of operations: rare keys first, then looser ones in the gaps, then similarity in what is left;
// as irscope/analysis/diff/align.py does.
import { column, keysOfWindows, keysWithOperands, rarePairs, type KeyOf, type Keys, type Pair } from "./anchors";
import type { Body } from "./body";
import { textHash } from "./hash";
import { pairRegions, regionEnds } from "./regions";

/** Lines of the left and of the right side that are still to be paired, each ascending. */
export type Gap = [number[], number[]];

const LARGEST_TABLE = 6000;
const ROUNDS = 3;

const keyOf: KeyOf = (body, line) => body.keys[line]!;
const nameHashes = new Map<string, number>();

const nameKeyOf: KeyOf = (body, line) => {
  const { name } = body.shapes[line]!;
  let hash = nameHashes.get(name);
  if (hash === undefined) nameHashes.set(name, (hash = textHash(name)));
  return hash;
};

export class Aligner {
  /** Each line's partner, -1 for none. */
  readonly toRight: number[];
  readonly toLeft: number[];
  /** Left lines whose partner stands elsewhere in the order. */
  readonly moved = new Set<number>();
  /** A line that opens regions -> the line that closes the last of them. */
  readonly leftEnds: Map<number, number>;
  readonly rightEnds: Map<number, number>;
  private readonly overlaps = new Map<string, number>();

  constructor(
    readonly left: Body,
    readonly right: Body,
  ) {
    this.toRight = new Array<number>(left.lines.length).fill(-1);
    this.toLeft = new Array<number>(right.lines.length).fill(-1);
    this.leftEnds = regionEnds(left);
    this.rightEnds = regionEnds(right);
  }

  pair(left: number, right: number): void {
    this.toRight[left] = right;
    this.toLeft[right] = left;
  }

  part(left: number): void {
    this.toLeft[this.toRight[left]!] = -1;
    this.toRight[left] = -1;
    this.moved.delete(left);
  }

  /** Pairs what can be paired in a gap, by keys that say less and less. */
  align(gap: Gap): void {
    const { left, right } = this;
    let gaps = this.prune(this.anchor([gap], column(left.deepKeys), column(right.deepKeys), { keepMoves: true }));
    if (!gaps.length) return;
    gaps = pairRegions(this, gaps);
    gaps = this.anchor(gaps, ...this.near(gaps, keyOf));
    gaps = this.anchor(gaps, ...this.windows(gaps, keyOf), { trim: false });
    gaps = this.finish(this.anchor(gaps, column(left.keys), column(right.keys)));
    if (!gaps.length) return;
    gaps = this.anchor(gaps, ...this.near(gaps, nameKeyOf), { trim: false });
    gaps = this.finish(this.anchor(gaps, ...this.windows(gaps, nameKeyOf), { trim: false }));
    const plain = (body: Body): Keys => ({ get: (line) => nameKeyOf(body, line) });
    gaps = this.finish(this.anchor(gaps, plain(left), plain(right)));
    for (const rest of gaps) this.byOrder(rest);
  }

  /** The gaps without operations that the other side of the gap has none of. */
  prune(gaps: Gap[]): Gap[] {
    const pruned: Gap[] = [];
    for (const [lefts, rights] of gaps) {
      const ours = new Set(lefts.map((line) => this.left.shapes[line]!.name));
      const theirs = new Set(rights.map((line) => this.right.shapes[line]!.name));
      const kept: Gap = [
        lefts.filter((line) => theirs.has(this.left.shapes[line]!.name)),
        rights.filter((line) => ours.has(this.right.shapes[line]!.name)),
      ];
      if (kept[0].length) pruned.push(kept);
    }
    return pruned;
  }

  /** Pairs lines whose key is unique in a gap on both sides, in rounds, since each gap makes more keys unique. */
  anchor(gaps: Gap[], leftKeys: Keys, rightKeys: Keys, { trim = true, keepMoves = false } = {}): Gap[] {
    const done: Gap[] = [];
    // A loop moves with all that it holds.
    const weight = keepMoves ? (line: number) => (this.leftEnds.get(line) ?? line) - line + 1 : undefined;
    for (let round = 0; round < ROUNDS && gaps.length; round++) {
      const work: Gap[] = [];
      for (const gap of gaps) {
        const [lefts, rights] = trim ? this.trim(gap, leftKeys, rightKeys) : gap;
        if (!lefts.length || !rights.length) continue;
        const { chain, moves } = rarePairs(lefts, rights, leftKeys, rightKeys, keepMoves, weight);
        if (keepMoves) {
          for (const [atLeft, atRight] of moves) {
            this.pair(lefts[atLeft]!, rights[atRight]!);
            this.moved.add(lefts[atLeft]!);
          }
        }
        if (chain.length) work.push(...this.split(lefts, rights, chain));
        else done.push(moves.length ? this.free(lefts, rights) : [lefts, rights]);
      }
      gaps = work;
    }
    return [...done, ...gaps].filter(([lefts, rights]) => lefts.length && rights.length);
  }

  /** How much two lines look like one operation before and after a change; 0 where they are not one. */
  similarity(leftLine: number, rightLine: number): number {
    const [one, other] = [this.left.shapes[leftLine]!, this.right.shapes[rightLine]!];
    if (one.name !== other.name || one.opens !== other.opens || !one.name) return 0;
    const agreeing = this.agreeing(leftLine, rightLine);
    if (this.left.keys[leftLine] === this.right.keys[rightLine]) return 8 + agreeing;
    const pair = `${one.template}\n${other.template}`;
    let overlap = this.overlaps.get(pair);
    if (overlap === undefined) {
      this.overlaps.set(pair, (overlap = overlapOf(this.bare(one.template), this.bare(other.template))));
    }
    if (overlap < 0.5 && !agreeing && !one.opens) return 0;
    return 3 + 2 * overlap + agreeing;
  }

  private free(lefts: number[], rights: number[]): Gap {
    return [lefts.filter((line) => this.toRight[line]! < 0), rights.filter((line) => this.toLeft[line]! < 0)];
  }

  private split(lefts: number[], rights: number[], anchors: Pair[]): Gap[] {
    const gaps: Gap[] = [];
    let [lastLeft, lastRight] = [0, 0];
    for (const [atLeft, atRight] of anchors) {
      this.pair(lefts[atLeft]!, rights[atRight]!);
      if (atLeft > lastLeft && atRight > lastRight) {
        gaps.push(this.free(lefts.slice(lastLeft, atLeft), rights.slice(lastRight, atRight)));
      }
      [lastLeft, lastRight] = [atLeft + 1, atRight + 1];
    }
    if (lastLeft < lefts.length && lastRight < rights.length) {
      gaps.push(this.free(lefts.slice(lastLeft), rights.slice(lastRight)));
    }
    return gaps;
  }

  private trim([lefts, rights]: Gap, leftKeys: Keys, rightKeys: Keys): Gap {
    let most = Math.min(lefts.length, rights.length);
    let start = 0;
    while (start < most && leftKeys.get(lefts[start]!) === rightKeys.get(rights[start]!)) {
      this.pair(lefts[start]!, rights[start]!);
      start++;
    }
    most -= start;
    let end = 0;
    while (end < most) {
      const [one, other] = [lefts[lefts.length - 1 - end]!, rights[rights.length - 1 - end]!];
      if (leftKeys.get(one) !== rightKeys.get(other)) break;
      end++;
      this.pair(one, other);
    }
    return [lefts.slice(start, lefts.length - end), rights.slice(start, rights.length - end)];
  }

  /** Keys of a line and of the lines that define its operands. */
  private near(gaps: Gap[], key: KeyOf): [Keys, Keys] {
    const side = (body: Body, at: 0 | 1) =>
      keysWithOperands(
        body,
        gaps.map((gap) => gap[at]),
        key,
      );
    return [side(this.left, 0), side(this.right, 1)];
  }

  /** Keys of a line and the next ones of its gap. */
  private windows(gaps: Gap[], key: KeyOf): [Keys, Keys] {
    const side = (body: Body, at: 0 | 1) =>
      keysOfWindows(
        body,
        gaps.map((gap) => gap[at]),
        key,
      );
    return [side(this.left, 0), side(this.right, 1)];
  }

  /** Pairs the small gaps by similarity; returns the large ones. */
  private finish(gaps: Gap[]): Gap[] {
    const large: Gap[] = [];
    for (const gap of [...gaps].sort((one, other) => one[0][0]! - other[0][0]!)) {
      if (gap[0].length * gap[1].length <= LARGEST_TABLE) this.bySimilarity(gap);
      else large.push(gap);
    }
    return large;
  }

  private bySimilarity([lefts, rights]: Gap): void {
    // The heaviest alignment that keeps the order, by dynamic programming.
    const width = rights.length + 1;
    const table = new Float64Array((lefts.length + 1) * width);
    for (let row = lefts.length - 1; row >= 0; row--) {
      const [current, below] = [row * width, (row + 1) * width];
      for (let at = rights.length - 1; at >= 0; at--) {
        let best = Math.max(table[below + at]!, table[current + at + 1]!);
        const score = this.similarity(lefts[row]!, rights[at]!);
        if (score) best = Math.max(best, score + table[below + at + 1]!);
        table[current + at] = best;
      }
    }
    for (let row = 0, at = 0; row < lefts.length && at < rights.length;) {
      const best = table[row * width + at]!;
      if (best === table[(row + 1) * width + at]) row++;
      else if (best === table[row * width + at + 1]) at++;
      else this.pair(lefts[row++]!, rights[at++]!);
    }
  }

  private byOrder([lefts, rights]: Gap): void {
    // A gap too large for a table: each line takes the next similar one within reach.
    let atRight = 0;
    for (const line of lefts) {
      for (let ahead = atRight; ahead < Math.min(atRight + 12, rights.length); ahead++) {
        if (this.similarity(line, rights[ahead]!) < 6) continue;
        this.pair(line, rights[ahead]!);
        atRight = ahead + 1;
        break;
      }
    }
  }

  private bare(template: string): string {
    // Aliases are named anew by every pass: their names say nothing.
    const { alias } = this.left.syntax;
    return alias ? template.replace(alias, "#") : template;
  }

  /** How many operands come from lines that are partners, and whether the results' names have one stem. */
  private agreeing(leftLine: number, rightLine: number): number {
    const { left, right } = this;
    const { defines } = left.shapes[leftLine]!;
    const [ours, theirs] = [left.values[leftLine]!, right.values[rightLine]!];
    const count = Math.min(ours.length, theirs.length);
    let agreeing = 0;
    for (let place = 0; place < count; place++) {
      const [one, other] = [ours[place]!, theirs[place]!];
      if (defines.includes(place)) {
        if (place) continue;
        const ourStem = stem(left.names[one]!);
        if (ourStem && ourStem === stem(right.names[other]!)) agreeing++;
        continue;
      }
      const [definer, otherDefiner] = [left.definers[one]!, right.definers[other]!];
      if (definer >= 0 && otherDefiner >= 0 && this.toRight[definer] === otherDefiner) agreeing++;
    }
    return Math.min(agreeing, 4);
  }
}

const DIGITS = /^\d+$/;

/** What a value is called without its number: "acc" of "%acc_69", "" of "%12". */
export function stem(name: string): string {
  const bare = name.replace(/^[%^]+/, "");
  const at = bare.lastIndexOf("_");
  const base = at > 0 && DIGITS.test(bare.slice(at + 1)) ? bare.slice(0, at) : bare;
  return !base || DIGITS.test(base) || /^c\d/.test(base) ? "" : base;
}

/** How much of the longer of two templates is a common beginning or end, 0 to 1. */
function overlapOf(one: string, other: string): number {
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start++;
  let end = 0;
  while (end < shorter - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end++;
  return (start + end) / Math.max(one.length, other.length, 1);
}
