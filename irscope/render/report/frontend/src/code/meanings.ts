// What an operation or an instruction does, in a sentence of our own.
import type { Kind } from "../data/model";
import { ASSEMBLY } from "./meanings_asm";
import { MLIR } from "./meanings_mlir";

const WORDS: Partial<Record<Kind, RegExp>> = {
  mlir: /[A-Za-z_]\w*(?:\.[A-Za-z_][\w]*)+/g,
  llvm: /[a-z_][\w.]*/g,
  ptx: /[a-z][\w]*(?:\.[\w:]+)*/g,
  sass: /[A-Z][A-Z0-9]+(?:\.\w+)*/g,
  amdgcn: /[a-z]\w*/g,
};

/** The word at a column and its meaning; undefined where none is known. */
export function meaningAt(line: string, column: number, kind: Kind): [string, string] | undefined {
  const words = WORDS[kind];
  if (!words) return undefined;
  for (const match of line.matchAll(words)) {
    if (column < match.index || column > match.index + match[0].length) continue;
    const found = kind === "mlir" ? MLIR[match[0]] : assembly(match[0], kind);
    return found ? [match[0], found] : undefined;
  }
  return undefined;
}

/** The longest known beginning of a mnemonic: `ld.global` of `ld.global.v4.b32`, `v_mfma` of `v_mfma_f32_32x32x8_f16`. */
function assembly(word: string, kind: Kind): string | undefined {
  const table = ASSEMBLY[kind];
  if (!table) return undefined;
  for (let end = word.length; end > 0; end = Math.max(word.lastIndexOf(".", end - 1), word.lastIndexOf("_", end - 1))) {
    const found = table[word.slice(0, end)];
    if (found) return found;
  }
  return undefined;
}
