// How two texts differ: as Python compared their structure (irscope/render/report/texts.py), or line by line.
import { renamed, type Plain } from "./columns";
import { common } from "./marks";
import type { Kind } from "./model";
import { numbersOf } from "./runs";

export type Op = "equal" | "added" | "removed" | "changed" | "moved";

/** Lines of one or both sides that share a fate; 0-based starts in `left` and `right`. */
export interface Entry {
  op: Op;
  left: number;
  leftCount: number;
  right: number;
  rightCount: number;
  /** For a changed line: it only reads another of several equal computations. */
  rewired: boolean;
  /** For moved lines: where they stand on the other side. */
  partner: number;
}

export interface Diff {
  kind: Kind;
  summary: string;
  /** Why the texts were compared line by line; null where their structure was. */
  fallback: string | null;
  entries: Entry[];
  left: string[];
  right: string[];
  /** 1-based lines of the texts. */
  leftNumbers: number[];
  rightNumbers: number[];
}

/** A diff as the page holds it. */
export interface PackedDiff {
  kind: Kind;
  summary: string;
  fallback: string | null;
  spaced: boolean;
  /** (kind, lines, for a move where its partner begins) again and again. */
  entries: number[];
  left: number[];
  right: number[];
  names: string[];
  leftOther: (number | string)[];
  rightOther: (number | string)[];
  /** The summary the other way round. */
  reversed?: string;
}

/** Whether there is a difference to be shown. */
export function differs(diff: Diff | undefined): diff is Diff {
  return diff?.entries.some((entry) => entry.op !== "equal") ?? false;
}

const OPS: readonly Op[] = ["equal", "added", "removed", "changed", "changed", "moved", "moved"];
const [ADDED, REMOVED, REWIRED, MOVED_LEFT, MOVED_RIGHT] = [1, 2, 4, 5, 6];

/** The diff of two texts that was packed. */
export function unpacked(packed: PackedDiff, leftText: Plain, rightText: Plain): Diff {
  const entries = entriesOf(packed.entries);
  const [leftNumbers, rightNumbers] = [numbersOf(packed.left), numbersOf(packed.right)];
  const own = (text: Plain) => (number: number) => trimmed(text.at(number) ?? "", packed.spaced);
  const left = replaced(leftNumbers.map(own(leftText)), packed.leftOther);
  const right = rightNumbers.map(own(rightText));
  const names = new Map<string, string>();
  for (let at = 0; at < packed.names.length; at += 2) names.set(packed.names[at]!, packed.names[at + 1]!);
  for (const entry of entries) {
    for (let line = 0; line < entry.rightCount; line++) {
      const at = entry.right + line;
      right[at] = entry.op === "equal" ? indented(left[entry.left + line]!, right[at]!) : renamed(right[at]!, names);
    }
  }
  return {
    kind: packed.kind,
    summary: packed.summary,
    fallback: packed.fallback,
    entries,
    left,
    right: replaced(right, packed.rightOther),
    leftNumbers,
    rightNumbers,
  };
}

function entriesOf(packed: number[]): Entry[] {
  const entries: Entry[] = [];
  let [left, right] = [0, 0];
  const add = (kind: number, leftCount: number, rightCount: number, partner = -1) => {
    const op = OPS[kind]!;
    entries.push({ op, left, leftCount, right, rightCount, rewired: kind === REWIRED, partner });
    left += leftCount;
    right += rightCount;
  };
  for (let at = 0; at < packed.length; at += 2) {
    const [kind, count] = [packed[at]!, packed[at + 1]!];
    if (kind === MOVED_LEFT) add(kind, count, 0, packed[2 + at++]!);
    else if (kind === MOVED_RIGHT) add(kind, 0, count, packed[2 + at++]!);
    else if (kind === ADDED) add(kind, 0, count);
    else if (kind === REMOVED) add(kind, count, 0);
    else if (OPS[kind] === "changed") for (let line = 0; line < count; line++) add(kind, 1, 1);
    else add(kind, count, count);
  }
  return entries;
}

/** A line as it is compared; where assembly is spaced anew, indented by four blanks or none. */
function trimmed(line: string, spaced: boolean): string {
  if (!spaced) return line.replace(/[ \t]+$/, "");
  const bare = line
    .replace(/^[ \t]+|[ \t]+$/g, "")
    .replaceAll(" \t", " ")
    .replaceAll("\t", " ");
  return bare && /^[ \t]/.test(line) ? `    ${bare}` : bare;
}

function indented(line: string, like: string): string {
  return (/^[ \t]*/.exec(like)?.[0] ?? "") + line.replace(/^[ \t]+/, "");
}

function replaced(lines: string[], others: (number | string)[]): string[] {
  for (let at = 0; at < others.length; at += 2) lines[others[at] as number] = others[at + 1] as string;
  return lines;
}

/** The same diff from right to left, under the names of what is now on the right. */
export function reversed(diff: Diff, summary: string): Diff {
  const other: Partial<Record<Op, Op>> = { added: "removed", removed: "added" };
  const entries = diff.entries.map((entry) => ({
    ...entry,
    op: other[entry.op] ?? entry.op,
    left: entry.right,
    leftCount: entry.rightCount,
    right: entry.left,
    rightCount: entry.leftCount,
  }));
  const { kind, fallback, left, right, leftNumbers, rightNumbers } = diff;
  return {
    kind,
    summary,
    fallback,
    entries,
    left: right,
    right: left,
    leftNumbers: rightNumbers,
    rightNumbers: leftNumbers,
  };
}

/** Two texts compared line by line: those are the same whose keys are. */
export function comparedByLine(
  [leftText, rightText]: [Plain, Plain],
  [ours, theirs]: [string[], string[]],
  kind: Kind,
  fallback: string,
): Diff {
  const pairs = common(ours, theirs).sort((one, other) => one[0] - other[0]);
  const entries: Entry[] = [];
  let [left, right] = [0, 0];
  const add = (op: Op, leftCount: number, rightCount: number) => {
    if (leftCount || rightCount) entries.push({ op, left, leftCount, right, rightCount, rewired: false, partner: -1 });
    left += leftCount;
    right += rightCount;
  };
  for (const [one, other] of [...pairs, [ours.length, theirs.length] as const]) {
    const [gone, come] = [one - left, other - right];
    if (gone === come) for (let line = 0; line < gone; line++) add("changed", 1, 1);
    add("removed", one - left, 0);
    add("added", 0, other - right);
    if (one < ours.length) add("equal", 1, 1);
  }
  return {
    kind,
    summary: "",
    fallback,
    entries,
    left: leftText.lines,
    right: rightText.lines,
    leftNumbers: leftText.numbers,
    rightNumbers: rightText.numbers,
  };
}
