// Counts the operations of a text by name; as irscope/ir/body/counts.py does.
import type { Kind } from "../data/model";
import type { Body } from "./body";
import { bodyOf } from "./bodies";

export type Counts = Map<string, number>;

// Lines of LLVM IR that begin with a word and are no instruction.
const LLVM_TOP_LEVEL = new Set(["source_filename", "target", "attributes", "declare", "define", "module"]);

/** Whether a line is an operation or an instruction: no label, end of a region, alias definition or directive. */
export function isOperation(body: Body, line: number): boolean {
  const { name } = body.shapes[line]!;
  return /^\p{L}/u.test(name) && !(body.kind === "llvm" && LLVM_TOP_LEVEL.has(name));
}

/** How often each operation or instruction occurs: `tt.load`, `add` (LLVM IR), `HMMA.16816.F32`. */
export function countsOf(text: string[], kind: Kind): Counts {
  const body = bodyOf(text, kind);
  const counts: Counts = new Map();
  body.shapes.forEach(({ name }, line) => {
    if (isOperation(body, line)) counts.set(name, (counts.get(name) ?? 0) + 1);
  });
  return counts;
}
