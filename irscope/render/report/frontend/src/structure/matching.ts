// Matches two bodies: which lines are partners, which values play the same part, and what differs; as
// irscope/analysis/diff/matching.py does.
import { Aligner, type Gap } from "./align";
import { append, longestAscending } from "./anchors";
import type { Body } from "./body";
import { rowHash } from "./hash";
import { Roles } from "./roles";
import { sortOutTwins } from "./twins";

const REFINEMENTS = 2;
const MOVE_ROUNDS = 3;
const ALTERED = 4.5;

export class Matching {
  readonly toLeft: number[];
  readonly toRight: number[];
  readonly moved: Set<number>;
  /** Per right line, whether it has a partner that says the same. */
  readonly equal: boolean[];
  private readonly aligner: Aligner;
  private readonly roles: Roles;

  constructor(
    readonly left: Body,
    readonly right: Body,
  ) {
    this.aligner = new Aligner(left, right);
    this.toLeft = this.aligner.toLeft;
    this.toRight = this.aligner.toRight;
    this.moved = this.aligner.moved;
    this.roles = new Roles(this.aligner);
    this.compare();
    if (!left.syntax.isVirtual) this.roles.blameWriters();
    this.equal = this.toLeft.map((one, other) => one >= 0 && this.isEqual(one, other));
  }

  /** Per right value, the left one whose part it plays; -1 for none. */
  get valueOf(): number[] {
    return this.roles.valueOf;
  }

  /** Whether partners differ only in which of several equal computations they read. */
  isRewired(leftLine: number, rightLine: number): boolean {
    return this.left.deepKeys[leftLine] === this.right.deepKeys[rightLine];
  }

  /** Whether two partners say the same, up to the names of values. */
  private isEqual(leftLine: number, rightLine: number): boolean {
    if (this.left.keys[leftLine] !== this.right.keys[rightLine]) return false;
    const [ours, theirs] = [this.left.values[leftLine]!, this.right.values[rightLine]!];
    return ours.length === theirs.length && theirs.every((value, place) => this.roles.isSame(ours[place]!, value));
  }

  private compare(): void {
    const { left, right, aligner } = this;
    const count = left.lines.length;
    if (count === right.lines.length && left.deepKeys.every((key, line) => key === right.deepKeys[line])) {
      for (let line = 0; line < count; line++) aligner.pair(line, line);
      this.roles.match();
      if (left.lines.every((_, line) => this.isEqual(line, line))) return;
      for (let line = 0; line < count; line++) aligner.part(line);
    }
    const lefts = openLines(left);
    const rights = openLines(right);
    aligner.align([lefts, rights]);
    this.partStrangers();
    this.roles.match();
    let before = lefts.length + 1;
    for (let round = 0; round < REFINEMENTS; round++) {
      const wanting = lefts.filter((line) => this.isWanting(line));
      if (wanting.length >= before || !this.refine(wanting, rights)) break;
      before = wanting.length;
      this.partStrangers();
      this.roles.match();
    }
    if (sortOutTwins(aligner, this.valueOf)) this.roles.match();
    for (let round = 0; round < MOVE_ROUNDS && this.findMoves(lefts, rights); round++) this.roles.match();
    for (const withOperands of [true, false]) {
      if (this.findAlteredMoves(lefts, rights, withOperands)) this.roles.match();
    }
    this.closeRegions();
    this.keepOrder();
  }

  /** Undoes pairs across regions: where one line stands in a loop that the other stands outside of, it moved. */
  private partStrangers(): void {
    const { toRight, toLeft, moved } = this;
    const [parents, otherParents] = [this.left.parents, this.right.parents];
    toRight.forEach((partner, line) => {
      if (partner < 0) return;
      const [parent, otherParent] = [parents[line]!, otherParents[partner]!];
      if ((parent >= 0 ? toRight[parent] === otherParent : otherParent < 0) || moved.has(line)) return;
      const one = around(parents, line, toRight);
      const other = around(otherParents, partner, toLeft);
      if ((one >= 0 ? toRight[one] : -1) !== other) this.aligner.part(line);
    });
  }

  /** Keys of the line and its operands, where the right operands go by the left ones' numbers. */
  private mappedKeys([lefts, rights]: Gap): [Map<number, number>, Map<number, number>] {
    const { left, right, valueOf } = this;
    const role = (value: number) => (valueOf[value]! < 0 ? -2 - value : valueOf[value]!);
    return [
      new Map(lefts.map((line) => [line, rowHash([left.keys[line]!, ...left.uses[line]!])])),
      new Map(rights.map((line) => [line, rowHash([right.keys[line]!, ...right.uses[line]!.map(role)])])),
    ];
  }

  /** Aligns what is not equal anew, now that operands can be told; returns whether there was anything to do. */
  private refine(wantingLeft: number[], rights: number[]): boolean {
    if (!wantingLeft.length) return false;
    const wanting = new Set(wantingLeft);
    const wantingRight = rights.filter((line) => this.toLeft[line]! < 0 || wanting.has(this.toLeft[line]!));
    if (!wantingRight.length) return false;
    const gaps = this.aligner.prune(this.gaps(wantingLeft, wantingRight));
    if (!gaps.length) return false;
    for (const [ours] of gaps) {
      for (const line of ours) if (this.toRight[line]! >= 0) this.aligner.part(line);
    }
    for (const gap of gaps) {
      for (const rest of this.aligner.anchor([gap], ...this.mappedKeys(gap), { keepMoves: true })) {
        this.aligner.align(rest);
      }
    }
    return true;
  }

  private isWanting(line: number): boolean {
    const partner = this.toRight[line]!;
    return partner < 0 || (!this.moved.has(line) && !this.isEqual(line, partner));
  }

  /** The lines that are not equal, in groups between those that are; groups with one pair only are settled. */
  private gaps(wantingLeft: number[], wantingRight: number[]): Gap[] {
    const wanting = new Set(wantingLeft);
    const gaps: Gap[] = [];
    let [atLeft, atRight] = [0, 0];
    const close = (endLeft: number, endRight: number) => {
      const [startLeft, startRight] = [atLeft, atRight];
      while (atLeft < wantingLeft.length && wantingLeft[atLeft]! < endLeft) atLeft++;
      while (atRight < wantingRight.length && wantingRight[atRight]! < endRight) atRight++;
      const ours = wantingLeft.slice(startLeft, atLeft);
      const theirs = wantingRight.slice(startRight, atRight);
      const settled = ours.length === 1 && theirs.length === 1 && this.toRight[ours[0]!] === theirs[0];
      if (ours.length && theirs.length && !settled) gaps.push([ours, theirs]);
    };
    this.toRight.forEach((partner, line) => {
      const fixed = partner >= 0 && !this.moved.has(line) && !this.left.shapes[line]!.closes && !wanting.has(line);
      if (fixed) close(line, partner);
    });
    close(this.toRight.length, this.toLeft.length);
    return gaps;
  }

  /** The lines that have no partner, without those that could have none. */
  private unpaired(lefts: number[], rights: number[]): Gap | undefined {
    const ours = lefts.filter((line) => this.toRight[line]! < 0);
    const theirs = rights.filter((line) => this.toLeft[line]! < 0);
    return this.aligner.prune([[ours, theirs]])[0];
  }

  /** Pairs lines that say the same in different places; returns whether there were any. */
  private findMoves(lefts: number[], rights: number[]): boolean {
    const gap = this.unpaired(lefts, rights);
    if (!gap) return false;
    const [leftKeys, rightKeys] = this.mappedKeys(gap);
    const waiting = new Map<number, number[]>();
    for (const line of gap[1].toReversed()) append(waiting, rightKeys.get(line)!, line);
    let found = false;
    for (const line of gap[0]) {
      const partner = waiting.get(leftKeys.get(line)!)?.pop();
      if (partner === undefined) continue;
      this.aligner.pair(line, partner);
      this.moved.add(line);
      found = true;
    }
    return found;
  }

  /**
   * Pairs what is left of operations that moved and changed on the way. They must be the only ones of their name in the
   * same region on either side; with `withOperands`, of their name and their operands.
   */
  private findAlteredMoves(lefts: number[], rights: number[], withOperands: boolean): boolean {
    const { left, right, toRight, toLeft, valueOf } = this;
    const gap = this.unpaired(lefts, rights);
    if (!gap) return false;
    const [ours, theirs] = [new Map<string, number>(), new Map<string, number>()];
    const note = (lines: Map<string, number>, line: number, place: number, name: string, operands: number[]) => {
      if (!operands.length && withOperands) return;
      const key = [place, name, ...(withOperands ? operands : [])].join(" ");
      lines.set(key, lines.has(key) ? -1 : line);
    };
    for (const line of gap[0]) {
      note(ours, line, around(left.parents, line, toRight), left.shapes[line]!.name, left.uses[line]!);
    }
    for (const line of gap[1]) {
      const outside = around(right.parents, line, toLeft);
      const operands = right.uses[line]!.map((value) => valueOf[value]!);
      note(theirs, line, outside >= 0 ? toLeft[outside]! : -1, right.shapes[line]!.name, operands);
    }
    let found = false;
    for (const [key, line] of ours) {
      const other = theirs.get(key) ?? -1;
      if (line < 0 || other < 0 || this.aligner.similarity(line, other) < ALTERED) continue;
      this.aligner.pair(line, other);
      this.moved.add(line);
      found = true;
    }
    return found;
  }

  /** The ends of regions are partners where the beginnings are. */
  private closeRegions(): void {
    const closers = new Map<number, number>();
    this.right.openers.forEach((opener, line) => {
      if (opener >= 0) closers.set(opener, line);
    });
    this.left.openers.forEach((opener, line) => {
      const partner = opener >= 0 ? this.toRight[opener]! : -1;
      const closer = partner >= 0 ? closers.get(partner) : undefined;
      if (closer === undefined) return;
      this.aligner.pair(line, closer);
      if (this.moved.has(opener)) this.moved.add(line);
    });
  }

  /** Calls moved whatever is out of order after all (regions that a text cut short never closes). */
  private keepOrder(): void {
    const lines = this.toRight.flatMap((other, line) => (other >= 0 && !this.moved.has(line) ? [line] : []));
    const kept = new Set(longestAscending(lines.map((line) => this.toRight[line]!)));
    lines.forEach((line, index) => {
      if (!kept.has(index)) this.moved.add(line);
    });
  }
}

function openLines(body: Body): number[] {
  return body.shapes.flatMap((shape, line) => (shape.closes ? [] : [line]));
}

/** The nearest line around one that has a partner; -1 for none. */
function around(parents: number[], line: number, partners: number[]): number {
  line = parents[line]!;
  while (line >= 0 && partners[line]! < 0) line = parents[line]!;
  return line;
}
