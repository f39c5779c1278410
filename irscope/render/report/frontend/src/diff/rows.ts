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

/** Rows of which each stands one line further than the one before. */
interface Piece {
  first: Row;
  count: number;
}

/** The rows; `open` holds the folds that are unfolded, or is null for all of them. */
export function rowsOf(diff: Diff, shown: Shown, open: ReadonlySet<number> | null): Row[] {
  const rows: Row[] = [];
  let quiet: Piece[] = [];
  let length = 0;
  let fold = -1;
  /** Adds what is quiet up to here: folded, but for a few lines next to a change. */
  const flush = (isLast: boolean) => {
    const start = rows.length ? CONTEXT : 0;
    const end = length - (isLast ? 0 : CONTEXT);
    const isFold = end > start;
    if (isFold) fold++;
    if (!isFold || end - start === 1 || open === null || open.has(fold)) rows.push(...slice(quiet, 0, length));
    else {
      const [hidden] = slice(quiet, start, start + 1);
      rows.push(...slice(quiet, 0, start));
      rows.push(row("fold", hidden!.left, hidden!.right, { fold, count: end - start }));
      rows.push(...slice(quiet, end, length));
    }
    quiet = [];
    length = 0;
  };
  for (const { first, count } of piecesOf(diff, shown)) {
    if (first.op === "equal" || first.op === "quiet") {
      quiet.push({ first, count });
      length += count;
    } else {
      flush(false);
      rows.push(...slice([{ first, count }], 0, count));
    }
  }
  flush(true);
  return rows;
}

/** The lines of a diff; long equal stretches are one piece each, whatever their length. */
function* piecesOf(diff: Diff, shown: Shown): Generator<Piece> {
  for (const { op, left, leftCount, right, rightCount, rewired, partner } of diff.entries) {
    if (op === "changed") {
      for (let n = 0; n < Math.max(leftCount, rightCount); n++) {
        const [one, other] = [leftCount ? left + n : -1, rightCount ? right + n : -1];
        yield { first: row(opOf(op, rewired, shown, one, other), one, other), count: 1 };
      }
      continue;
    }
    const onRight = op === "moved" && rightCount > 0;
    const first = row(op, leftCount && !onRight ? left : -1, rightCount ? right : -1);
    if (op === "moved") first.partner = partner;
    yield { first, count: onRight ? rightCount : Math.max(leftCount, rightCount) };
  }
}

/** Some of the rows of pieces, which are counted over all of them. */
function slice(pieces: Piece[], from: number, to: number): Row[] {
  const rows: Row[] = [];
  const at = (start: number, n: number) => (start < 0 ? -1 : start + n);
  let begun = 0;
  for (const { first, count } of pieces) {
    for (let n = Math.max(0, from - begun); n < Math.min(count, to - begun); n++)
      rows.push({ ...first, left: at(first.left, n), right: at(first.right, n), partner: at(first.partner, n) });
    begun += count;
  }
  return rows;
}

function opOf(op: Op, rewired: boolean, shown: Shown, left: number, right: number): Row["op"] {
  if (op !== "changed") return op;
  // What the toggles hide is no change that can be seen.
  if (shown.left[left] === shown.right[right]) return "equal";
  return rewired ? "quiet" : "changed";
}
