// Tells apart operations that compute the same from the same, by who reads them; as irscope/analysis/diff/twins.py does.
import type { Aligner } from "./align";

/** Pairs equal computations anew, by the votes of the lines that read them; returns whether any pair changed. */
export function sortOutTwins(aligner: Aligner, valueOf: number[]): boolean {
  const { left, right, toLeft, toRight, moved } = aligner;

  const areTwins = (leftLine: number, rightLine: number) =>
    leftLine >= 0 && rightLine >= 0 && left.deepKeys[leftLine] === right.deepKeys[rightLine];

  /** Every operand that partners read in the same place: left value, right value. */
  const eachOperand = (visit: (one: number, other: number) => void) => {
    toLeft.forEach((leftLine, rightLine) => {
      if (leftLine < 0) return;
      const [ours, theirs] = [left.uses[leftLine]!, right.uses[rightLine]!];
      const count = Math.min(ours.length, theirs.length);
      for (let place = 0; place < count; place++) visit(ours[place]!, theirs[place]!);
    });
  };

  // Right values that some partner reads where the left side reads an equal computation, but another one.
  const contested = new Set<number>();
  eachOperand((one, other) => {
    if (valueOf[other] !== one && areTwins(left.definers[one]!, right.definers[other]!)) contested.add(other);
  });
  if (!contested.size) return false;

  const votes = new Map<number, Map<number, number>>();
  eachOperand((one, other) => {
    const definer = right.definers[other]!;
    if (!contested.has(other) || !areTwins(left.definers[one]!, definer)) return;
    const counts = votes.get(definer) ?? new Map<number, number>();
    votes.set(definer, counts);
    counts.set(left.definers[one]!, (counts.get(left.definers[one]!) ?? 0) + 1);
  });
  const changed = new Map<number, number>();
  const taken = new Set<number>();
  for (const [line, counts] of [...votes].sort((a, b) => a[0] - b[0])) {
    // Among equals the present partner stays.
    const present = toLeft[line]!;
    const ranked = [...counts].sort((a, b) => b[1] - a[1] || Number(a[0] !== present) - Number(b[0] !== present));
    const elected = ranked.find(([leftLine]) => !taken.has(leftLine))?.[0];
    if (elected === undefined) continue;
    taken.add(elected);
    if (elected !== present) changed.set(line, elected);
  }
  if (!changed.size) return false;

  const before = new Map([...changed.keys()].map((line) => [line, toLeft[line]!]));
  for (const [line, partner] of changed) {
    for (const leftLine of [before.get(line)!, partner]) {
      if (leftLine >= 0 && toRight[leftLine]! >= 0) aligner.part(leftLine);
    }
  }
  // Each takes its new partner, or else its old one, where that is free and keeps the order.
  const bounds = new Array<number>(toLeft.length + 1).fill(toRight.length);
  for (let line = toLeft.length - 1; line >= 0; line--) {
    const partner = toLeft[line]!;
    bounds[line] = partner >= 0 && !moved.has(partner) ? partner : bounds[line + 1]!;
  }
  let last = -1;
  toLeft.forEach((_, line) => {
    const wanted = changed.get(line);
    if (wanted !== undefined && toLeft[line]! < 0) {
      const candidate = [wanted, before.get(line)!].find(
        (one) => last < one && one < bounds[line]! && toRight[one]! < 0,
      );
      if (candidate !== undefined) aligner.pair(candidate, line);
    }
    const partner = toLeft[line]!;
    if (partner >= 0 && !moved.has(partner)) last = partner;
  });
  return true;
}
