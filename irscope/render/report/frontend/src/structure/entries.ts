// The entries of a comparison, over the lines of both sides; as irscope/analysis/diff/entries.py has them.
import type { Entry, Op } from "../data/diff";
import type { Pair } from "./anchors";
import type { Matching } from "./matching";
import type { Display } from "./rename";

/** The entries of a matching: in the order of both sides, each line of each side once. */
export function entriesOf(matching: Matching, display: Display): Entry[] {
  const entries = new Entries();
  for (const pair of display.head) addDefinition(entries, pair);
  addBody(entries, matching, display);
  for (const pair of display.tail) addDefinition(entries, pair);
  return entries.rows;
}

class Entries {
  readonly rows: Entry[] = [];

  /** Adds lines; neighbours that share a fate are one entry, a changed line always is its own. */
  add(op: Op, left: Pair, right: Pair, { rewired = false, partner = -1 } = {}): void {
    const [leftCount, rightCount] = [left[1], right[1]];
    const last = this.rows.at(-1);
    const joins =
      last !== undefined &&
      last.op === op &&
      op !== "changed" &&
      last.leftCount > 0 === leftCount > 0 &&
      last.rightCount > 0 === rightCount > 0 &&
      (op !== "moved" || last.partner + last.leftCount + last.rightCount === partner);
    if (joins) {
      last.leftCount += leftCount;
      last.rightCount += rightCount;
    } else {
      this.rows.push({ op, left: left[0], leftCount, right: right[0], rightCount, rewired, partner });
    }
  }
}

function addDefinition(entries: Entries, [one, other]: Pair): void {
  const last = entries.rows.at(-1);
  if (one < 0) entries.add("added", [last ? last.left + last.leftCount : 0, 0], [other, 1]);
  else if (other < 0) entries.add("removed", [one, 1], [last ? last.right + last.rightCount : 0, 0]);
  else entries.add("equal", [one, 1], [other, 1]);
}

function addBody(entries: Entries, matching: Matching, { leftStart, rightStart }: Display): void {
  const { toLeft, toRight, moved, equal } = matching;
  let [atLeft, atRight] = [0, 0];
  while (atLeft < toRight.length || atRight < toLeft.length) {
    const [one, other] = [leftStart + atLeft, rightStart + atRight];
    const ours = atLeft < toRight.length;
    const theirs = atRight < toLeft.length;
    if (ours && toRight[atLeft]! < 0) {
      entries.add("removed", [one, 1], [other, 0]);
      atLeft++;
    } else if (ours && moved.has(atLeft)) {
      entries.add("moved", [one, 1], [other, 0], { partner: toRight[atLeft]! + rightStart });
      atLeft++;
    } else if (theirs && toLeft[atRight]! < 0) {
      entries.add("added", [one, 0], [other, 1]);
      atRight++;
    } else if (theirs && moved.has(toLeft[atRight]!)) {
      entries.add("moved", [one, 0], [other, 1], { partner: toLeft[atRight]! + leftStart });
      atRight++;
    } else {
      const rewired = !equal[atRight] && matching.isRewired(atLeft, atRight);
      entries.add(equal[atRight] ? "equal" : "changed", [one, 1], [other, 1], { rewired });
      atLeft++;
      atRight++;
    }
  }
}
