// A structural diff, as irscope/render/report_diffs.py packs it.
import type { Kind } from "./model";

export interface PackedDiff {
  k: Kind;
  s: string;
  f: string | null;
  e: number[];
  ln: number[];
  rn: number[];
  lx: [number[], string[]];
  rx: [number[], string[]];
}

export type Op = "equal" | "added" | "removed" | "changed" | "moved";
const OPS: Op[] = ["equal", "added", "removed", "changed", "moved"];

export interface Entry {
  op: Op;
  left: number;
  leftCount: number;
  right: number;
  rightCount: number;
  rewired: boolean;
  partner: number;
}

export interface Diff {
  kind: Kind;
  summary: string;
  fallback: string | null;
  entries: Entry[];
  left: string[];
  right: string[];
  /** 1-based lines of the texts. */
  leftNumbers: number[];
  rightNumbers: number[];
  /** The texts' own lines, with their locations. */
  leftRaw: string[];
  rightRaw: string[];
  /** All lines of both texts. */
  leftText: string[];
  rightText: string[];
}

const LOCATION = / loc\((?:#loc\d*|unknown)\)|,? !dbg !\d+/g;

/** A line without its simple locations; the recorder of the report has the same rule. */
export function plain(line: string): string {
  return line.replace(LOCATION, "").replace(/ +$/, "");
}

export function readDiff(packed: PackedDiff, left: string[], right: string[]): Diff {
  const leftNumbers = numbers(packed.ln);
  const rightNumbers = numbers(packed.rn);
  const leftRaw = leftNumbers.map((number) => left[number - 1]!);
  const rightRaw = rightNumbers.map((number) => right[number - 1]!);
  const leftLines = filled(leftRaw.map(plain), packed.lx);
  const rightLines = rightRaw.map(plain);
  const entries = readEntries(packed.e);
  for (const entry of entries) {
    if (entry.op !== "equal") continue;
    for (let n = 0; n < entry.leftCount; n++) rightLines[entry.right + n] = leftLines[entry.left + n]!;
  }
  return {
    kind: packed.k,
    summary: packed.s,
    fallback: packed.f,
    entries,
    left: leftLines,
    right: filled(rightLines, packed.rx),
    leftNumbers,
    rightNumbers,
    leftRaw,
    rightRaw,
    leftText: left,
    rightText: right,
  };
}

function readEntries(packed: number[]): Entry[] {
  const entries: Entry[] = [];
  let left = 0;
  let right = 0;
  for (let at = 0; at < packed.length; at += 2) {
    const op = OPS[packed[at]!]!;
    const count = packed[at + 1]!;
    const entry = { op, left, leftCount: 0, right, rightCount: 0, rewired: false, partner: -1 };
    if (op === "moved") {
      entry.leftCount = count;
      entry.rightCount = packed[at + 2]!;
      entry.partner = packed[at + 3]!;
      at += 2;
    } else if (op === "changed") {
      entry.leftCount = entry.rightCount = 1;
      entry.rewired = count === 1;
    } else {
      entry.leftCount = op === "added" ? 0 : count;
      entry.rightCount = op === "removed" ? 0 : count;
    }
    left += entry.leftCount;
    right += entry.rightCount;
    entries.push(entry);
  }
  return entries;
}

function numbers(runs: number[]): number[] {
  const found: number[] = [];
  let end = 1;
  for (let at = 0; at < runs.length; at += 2) {
    const start = end + runs[at]!;
    end = start + runs[at + 1]!;
    for (let number = start; number < end; number++) found.push(number);
  }
  return found;
}

function filled(lines: string[], [steps, texts]: [number[], string[]]): string[] {
  let at = 0;
  steps.forEach((step, index) => {
    at += step;
    lines[at] = texts[index]!;
  });
  return lines;
}
