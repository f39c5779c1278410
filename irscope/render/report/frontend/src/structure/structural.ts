// The structural comparison of two texts of one kind: operations by what they are, names by the part they play. The
// same comparison as irscope/analysis/diff/texts.py, line for line: a test runs both and compares what they say.
import type { Diff, Entry, Op } from "../data/diff";
import type { Kind } from "../data/model";
import { bodyOf } from "./bodies";
import type { Body } from "./body";
import { entriesOf } from "./entries";
import { matched } from "./reorder";
import { renamedRight } from "./rename";

const TITLES: Partial<Record<Kind, string>> = {
  mlir: "MLIR",
  llvm: "LLVM IR",
  ptx: "PTX",
  sass: "SASS",
  amdgcn: "AMD GPU assembly",
};

/** Compares the lines of two texts of one kind. Never throws on any text. */
export function diffTexts(left: string[], right: string[], kind: Kind): Diff {
  let [ours, theirs] = [bodyOf(left, kind), bodyOf(right, kind)];
  const fallback = unreadable(ours, theirs);
  if (fallback !== null) [ours, theirs] = [bodyOf(left, "binary"), bodyOf(right, "binary")];
  const matching = matched(ours, theirs);
  const display = renamedRight(matching);
  const entries = entriesOf(matching, display);
  return {
    kind,
    summary: summaryOf(entries, display.left.length, display.right.length),
    fallback,
    entries,
    left: display.left,
    right: display.right,
    leftNumbers: display.leftNumbers,
    rightNumbers: display.rightNumbers,
    leftText: left,
    rightText: right,
  };
}

/** Why the texts must be compared line by line; null where they can be read. */
function unreadable(left: Body, right: Body): string | null {
  if (!(left.kind in TITLES)) {
    return "This kind of text has no structure that irscope reads: compared line by line.";
  }
  for (const [side, body] of [
    ["left", left],
    ["right", right],
  ] as const) {
    const opaque = body.shapes.filter((shape) => !shape.name).length;
    if (opaque * 2 > body.shapes.length) {
      return `The ${side} text does not read as ${TITLES[body.kind]}: compared line by line.`;
    }
  }
  return null;
}

function summaryOf(entries: Entry[], leftLines: number, rightLines: number): string {
  if (entries.every((entry) => entry.op === "equal")) return "No difference.";
  const counts: Record<Op, number> = { equal: 0, added: 0, removed: 0, changed: 0, moved: 0 };
  for (const entry of entries) {
    if (entry.op !== "moved" || entry.leftCount) counts[entry.op] += entry.leftCount || entry.rightCount;
  }
  const larger = Math.max(leftLines, rightLines);
  const isUnrelated = larger > 8 && (counts.equal + counts.moved + counts.changed) * 10 < larger;
  const parts = (["added", "removed", "changed", "moved"] as const).flatMap((op) =>
    counts[op] ? [`${counts[op]} ${op}`] : [],
  );
  const start = isUnrelated ? "The texts have next to nothing in common: " : "";
  return `${start}${parts.join(", ")}; ${counts.equal} equal.`;
}
