// A diff as it is sent from a worker to the page: lines as one string each side, all else in arrays of numbers.
import type { Diff, Entry, Op } from "./diff";
import type { Kind } from "./model";

export interface Sent {
  kind: Kind;
  summary: string;
  fallback: string | null;
  /** Of each entry: operation, left, count, right, count, rewired, partner. */
  entries: Int32Array;
  left: string;
  leftNumbers: Int32Array;
  /** Of each right line, the left line that reads the same, or -1: then it is the next one of `fresh`. */
  right: Int32Array;
  fresh: string;
  rightNumbers: Int32Array;
}

const OPS: readonly Op[] = ["equal", "added", "removed", "changed", "moved"];
const WIDTH = 7;

export function sent(diff: Diff): Sent {
  const entries = new Int32Array(diff.entries.length * WIDTH);
  diff.entries.forEach(({ op, left, leftCount, right, rightCount, rewired, partner }, index) =>
    entries.set([OPS.indexOf(op), left, leftCount, right, rightCount, Number(rewired), partner], index * WIDTH),
  );
  const places = new Map(diff.left.map((line, index) => [line, index]));
  const fresh: string[] = [];
  const right = Int32Array.from(diff.right, (line) => {
    const place = places.get(line);
    if (place === undefined) fresh.push(line);
    return place ?? -1;
  });
  return {
    kind: diff.kind,
    summary: diff.summary,
    fallback: diff.fallback,
    entries,
    left: joined(diff.left),
    leftNumbers: Int32Array.from(diff.leftNumbers),
    right,
    fresh: joined(fresh),
    rightNumbers: Int32Array.from(diff.rightNumbers),
  };
}

/** Whether all entries are equal. */
export function isSame({ entries }: Sent): boolean {
  return entries.every((value, at) => at % WIDTH !== 0 || OPS[value] === "equal");
}

/** The diff that was sent; `leftText` and `rightText` give all lines of both texts when they are asked for. */
export function received(from: Sent, leftText: () => string[], rightText: () => string[]): Diff {
  const entries: Entry[] = [];
  for (let at = 0; at < from.entries.length; at += WIDTH) {
    const [op, left, leftCount, right, rightCount, rewired, partner] = from.entries.subarray(at, at + WIDTH);
    entries.push({
      op: OPS[op!]!,
      left: left!,
      leftCount: leftCount!,
      right: right!,
      rightCount: rightCount!,
      rewired: rewired === 1,
      partner: partner!,
    });
  }
  const left = split(from.left);
  const fresh = split(from.fresh);
  let next = 0;
  return {
    kind: from.kind,
    summary: from.summary,
    fallback: from.fallback,
    entries,
    left,
    right: Array.from(from.right, (place) => (place < 0 ? fresh[next++]! : left[place]!)),
    leftNumbers: from.leftNumbers,
    rightNumbers: from.rightNumbers,
    get leftText() {
      return leftText();
    },
    get rightText() {
      return rightText();
    },
  };
}

// With a line feed behind each line: no lines and one empty line are told apart.
export function joined(lines: string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

export function split(text: string): string[] {
  const lines = text.split("\n");
  lines.pop();
  return lines;
}
