// Which value of the right side plays the part of which value of the left one; as irscope/analysis/diff/roles.py has it.
import { stem, type Aligner } from "./align";
import { append } from "./anchors";
import type { Body } from "./body";
import { VALUE } from "./tokens";

export class Roles {
  /** Per right value, the left one whose part it plays; -1 for none. */
  valueOf: number[] = [];
  /** Per left value, the right one that plays its part; -1 for none. */
  private roleOf: number[] = [];
  /** Left values of physical registers whose writer stands in for the readers that lost it. */
  private exposed = new Set<number>();
  private readonly left: Body;
  private readonly right: Body;

  constructor(private readonly aligner: Aligner) {
    this.left = aligner.left;
    this.right = aligner.right;
  }

  /** Matches all values anew, by the present partners of lines. */
  match(): void {
    const { left, right } = this;
    const { toLeft } = this.aligner;
    this.valueOf = new Array<number>(right.names.length).fill(-1);
    this.roleOf = new Array<number>(left.names.length).fill(-1);
    this.exposed = new Set();
    toLeft.forEach((leftLine, rightLine) => {
      if (leftLine >= 0 && right.shapes[rightLine]!.defines.length) this.byDefinitions(leftLine, rightLine);
    });
    const { valueOf } = this;
    if (!valueOf.includes(-1)) return;
    toLeft.forEach((leftLine, rightLine) => {
      if (leftLine >= 0 && right.values[rightLine]!.some((value) => valueOf[value]! < 0)) {
        this.byUses(leftLine, rightLine);
      }
    });
    // Nothing defines it (a string that looks like a value, a text cut short): its name is all there is.
    if (!right.syntax.keepsUnknown) return;
    const loose = new Map<string, number[]>();
    for (let value = left.names.length - 1; value >= 0; value--) {
      if (left.definers[value]! < 0 && this.roleOf[value]! < 0) append(loose, left.names[value]!, value);
    }
    right.definers.forEach((definer, value) => {
      if (definer >= 0 || valueOf[value]! >= 0) return;
      const named = loose.get(right.names[value]!)?.pop();
      if (named !== undefined) this.pair(named, value);
    });
  }

  /** Where readers of one register read different values, parts the values that moved to another register. */
  blameWriters(): void {
    const { left, right, valueOf, roleOf } = this;
    const parted: [number, number][] = [];
    const blamed: [number, number][] = [];
    this.aligner.toLeft.forEach((leftLine, rightLine) => {
      if (leftLine < 0 || left.keys[leftLine] !== right.keys[rightLine]) return;
      const theirs = right.values[rightLine]!;
      left.values[leftLine]!.forEach((one, place) => {
        const other = theirs[place];
        if (other === undefined || valueOf[other] === one || left.names[one] !== right.names[other]) return;
        const pairs: [number, number][] = [
          [one, roleOf[one]!],
          [valueOf[other]!, other],
        ];
        const moved = pairs.filter(([a, b]) => a >= 0 && b >= 0 && left.names[a] !== right.names[b]);
        if (!moved.some(([, b]) => right.definers[b]! >= 0)) return;
        parted.push(...moved);
        blamed.push([one, other]);
      });
    });
    for (const [one, other] of parted) roleOf[one] = valueOf[other] = -1;
    for (const [one, other] of blamed) {
      this.pair(one, other);
      this.exposed.add(one);
    }
  }

  /** Whether a right value plays the part of a left one, or the writer of either shows that it does not. */
  isSame(one: number, other: number): boolean {
    if (this.valueOf[other] === one) return true;
    return this.exposed.has(one) && this.left.names[one] === this.right.names[other];
  }

  private pair(left: number, right: number): void {
    if (left < 0 || this.valueOf[right]! >= 0 || this.roleOf[left]! >= 0) return;
    this.valueOf[right] = left;
    this.roleOf[left] = right;
  }

  private byDefinitions(leftLine: number, rightLine: number): void {
    const { left, right } = this;
    const shape = left.shapes[leftLine]!;
    const [one, other] = [shape.defines, right.shapes[rightLine]!.defines];
    if (!one.length || !other.length) return;
    const [ours, theirs] = [left.values[leftLine]!, right.values[rightLine]!];
    if (one.length === other.length) {
      one.forEach((place, index) => this.pair(ours[place]!, theirs[other[index]!]!));
      return;
    }
    // Loop-carried values came or went: results first, then what the loop counts, then those of one stem, in order.
    const settled = shape.name === "scf.for" && shape.template[0] === VALUE ? 2 : 1;
    for (let index = 0; index < Math.min(settled, one.length, other.length); index++) {
      this.pair(ours[one[index]!]!, theirs[other[index]!]!);
    }
    let start = settled;
    for (const place of one.slice(settled)) {
      const wanted = stem(left.names[ours[place]!]!);
      if (!wanted) continue;
      for (let index = start; index < other.length; index++) {
        const candidate = theirs[other[index]!]!;
        if (stem(right.names[candidate]!) !== wanted) continue;
        this.pair(ours[place]!, candidate);
        start = index + 1;
        break;
      }
    }
  }

  private byUses(leftLine: number, rightLine: number): void {
    const { left, right, valueOf, roleOf } = this;
    const { toRight, toLeft } = this.aligner;
    const [ours, theirs] = [left.values[leftLine]!, right.values[rightLine]!];
    if (ours.length !== theirs.length) return;
    ours.forEach((one, place) => {
      const other = theirs[place]!;
      if (valueOf[other]! >= 0 || roleOf[one]! >= 0) return;
      const [definer, otherDefiner] = [left.definers[one]!, right.definers[other]!];
      if (right.syntax.keepsUnknown && (definer < 0 || otherDefiner < 0)) return;
      if (left.kind === "mlir" && left.names[one]![0] !== right.names[other]![0]) return;
      // Both definitions went their own way: what takes the place of a value takes its part.
      if (isLoose(definer, toRight, otherDefiner) && isLoose(otherDefiner, toLeft, definer)) {
        valueOf[other] = one;
        roleOf[one] = other;
      }
    });
  }
}

function isLoose(definer: number, partners: number[], otherDefiner: number): boolean {
  return definer < 0 || partners[definer]! < 0 || partners[definer] === otherDefiner;
}
