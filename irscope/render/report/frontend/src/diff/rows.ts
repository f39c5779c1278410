// The rows of a diff as they are shown: what changed, a few lines around it, and folds for the rest.
import type { Diff, Op } from "../data/diff";

export interface Row {
  op: Op | "fold" | "quiet";
  /** 0-based lines of the diff's sides, -1 for none. */
  left: number;
  right: number;
  partner: number;
  /** For a fold: its number among the folds, and how many lines it hides. */
  fold: number;
  count: number;
}

const CONTEXT = 3;

export interface Shown {
  left: string[];
  right: string[];
}

function row(op: Row["op"], left: number, right: number, more: Partial<Row> = {}): Row {
  return { op, left, right, partner: -1, fold: -1, count: 0, ...more };
}

/** The rows; `open` holds the folds that are unfolded, or is null for all of them. */
export function rowsOf(diff: Diff, shown: Shown, open: ReadonlySet<number> | null): Row[] {
  const rows: Row[] = [];
  const all: Row[] = [];
  for (const entry of diff.entries) {
    if (entry.op === "moved" && entry.rightCount) {
      for (let n = 0; n < entry.rightCount; n++)
        all.push(row("moved", -1, entry.right + n, { partner: entry.partner + n }));
      continue;
    }
    if (entry.op === "moved") {
      for (let n = 0; n < entry.leftCount; n++)
        all.push(row("moved", entry.left + n, -1, { partner: entry.partner + n }));
      continue;
    }
    const count = Math.max(entry.leftCount, entry.rightCount);
    for (let n = 0; n < count; n++) {
      const left = entry.leftCount ? entry.left + n : -1;
      const right = entry.rightCount ? entry.right + n : -1;
      all.push(row(opOf(entry.op, entry.rewired, shown, left, right), left, right));
    }
  }
  const quiet = (one: Row | undefined) => one?.op === "equal" || one?.op === "quiet";
  const near = distances(all.map((one) => !quiet(one)));
  let fold = -1;
  for (let at = 0; at < all.length;) {
    const one = all[at]!;
    if (!quiet(one) || near[at]! <= CONTEXT) {
      rows.push(one);
      at++;
      continue;
    }
    let end = at;
    while (end < all.length && quiet(all[end]) && near[end]! > CONTEXT) end++;
    fold++;
    if (end - at === 1 || open === null || open.has(fold)) rows.push(...all.slice(at, end));
    else rows.push(row("fold", one.left, one.right, { fold, count: end - at }));
    at = end;
  }
  return rows;
}

function opOf(op: Op, rewired: boolean, shown: Shown, left: number, right: number): Row["op"] {
  if (op !== "changed") return op;
  // What the toggles hide is no change that can be seen.
  if (shown.left[left] === shown.right[right]) return "equal";
  return rewired ? "quiet" : "changed";
}

/** How far each row is from the next one that counts. */
function distances(counts: boolean[]): number[] {
  const found = new Array<number>(counts.length);
  let last = Infinity;
  counts.forEach((is, at) => (found[at] = last = is ? 0 : last + 1));
  last = Infinity;
  for (let at = counts.length - 1; at >= 0; at--) {
    last = counts[at] ? 0 : last + 1;
    found[at] = Math.min(found[at]!, last);
  }
  return found;
}
