// A text without what says nothing of the program; as irscope/ir/body/clean.py has it.
import type { Kind } from "../data/model";

// "%0 = tt.load %p : !tt.ptr<f32> loc(#loc12)"
const SIMPLE_LOCATION = / loc\((?:#loc\d*|unknown)\)/g;
// '%a: i32 loc("a"(#loc)), %b: i32 loc(callsite(#loc3 at #loc4))'
const LOCATION = " loc(";
// 'loc("name with ) inside"(#loc3))'
const LOCATION_PART = /"(?:[^"\\\n]|\\.)*"|[()\n]/g;
// "^bb2(%0: i32):  // 2 preds: ^bb0, ^bb1"
const MLIR_COMMENT = /\/\/.*/g;
// "  %1 = add i32 %0, 1, !dbg !12"
const DEBUG_ATTACHMENT = /,? !dbg !\d+/g;
// "12:                       ; preds = %4, %0"    "; ModuleID = 'LLVMDialectModule'"
const LLVM_COMMENT = /^;.*$|\s+; (?:preds =|No predecessors|\[#uses=).*$/gm;
// "!7 = distinct !DISubprogram(name: …)"   "!llvm.dbg.cu = !{!0}"   "  #dbg_value(i32 %0, !9, !DIExpression(), !12)"
const LLVM_DEBUG =
  /^(?:!\d+ = (?:distinct )?!DI|!llvm\.dbg\.|\s*#dbg_|\s*(?:tail )?call void @llvm\.dbg\.|declare void @llvm\.dbg\.)/;
// "	.loc	1 24 0      "   ".Ltmp12:"   "$L__func_begin0:"   "	.cfi_startproc"
const ASM_DEBUG = /^\s*(?:\.(?:loc|file|cfi_\w+)\b|(?:\.Ltmp|\.Lfunc_|\$L__tmp|\$L__func_)\w*:\s*$)/;
// "	.section	.debug_info"   '	.section	".debug_line"'
const SECTION = /^\s*\.section\s+"?(?<name>[.\w$]+)/;
// "        /*0010*/                   S2R R13, SR_TID.X ;        /* 0x00000000000d7919 */"
const SASS_COMMENT = /\/\*.*?\*\/|\/\/.*$/g;
// "        0000  B-1----:R-:W0:Y:S01  G001:P0:U00:Q0  LDC R1, c[0x0][0x28]"
const SASS_COLUMNS = /^ *[0-9a-f]{4,}  (?:B[0-9-]{6}:R[0-9-]:W[0-9-]:[Y-]:S\d\d|-)(?:  G\d+(?::[PUQ]\d+)*)?  /;

export interface Cleaned {
  lines: string[];
  /** 1-based lines of the text. */
  numbers: number[];
}

/** The lines of a text that count. */
export function clean(text: string, kind: Kind): Cleaned {
  if (kind === "mlir") {
    return numbered(
      stripLocations(text.includes("//") ? text.replace(MLIR_COMMENT, withoutComment) : text).split("\n"),
    );
  }
  if (kind === "llvm") return cleanLlvm(text);
  if (kind === "sass") {
    const bare = (line: string) =>
      respaced(line.replace(SASS_COLUMNS, "        ").replace(SASS_COMMENT, "").replaceAll(".reuse", ""));
    return numbered(text.split("\n").map(bare));
  }
  return cleanAssembly(text, kind);
}

function withoutComment(comment: string, at: number, text: string): string {
  // Comments stand on lines of their own and behind block headers; elsewhere "//" stands in a string.
  const before = text.slice(text.lastIndexOf("\n", at - 1) + 1, at).trim();
  return before && before[0] !== "^" ? comment : "";
}

function numbered(lines: string[]): Cleaned {
  const found: Cleaned = { lines: [], numbers: [] };
  lines.forEach((line, index) => {
    const bare = line.trimEnd();
    if (!bare) return;
    found.lines.push(bare);
    found.numbers.push(index + 1);
  });
  return found;
}

/** The text of an MLIR module without `loc(…)`, whatever the nesting; the number of lines stays. */
function stripLocations(whole: string): string {
  const text = whole.replace(SIMPLE_LOCATION, "");
  let start = text.indexOf(LOCATION);
  if (start < 0) return text;
  let kept = "";
  let done = 0;
  while (start >= 0) {
    const end = closing(text, start + LOCATION.length);
    if (end < 0) {
      // Unbalanced to the end of its line: go on with the next one.
      const lineEnd = text.indexOf("\n", start + LOCATION.length);
      start = lineEnd >= 0 ? text.indexOf(LOCATION, lineEnd) : -1;
      continue;
    }
    const lineStart = text.lastIndexOf("\n", start - 1) + 1;
    if (count(text, '"', Math.max(lineStart, done), start) % 2) {
      start = text.indexOf(LOCATION, start + LOCATION.length);
      continue;
    }
    // An alias "#loc3 = loc(…)" goes with its definition, which nothing names any more.
    if (text[lineStart] !== "#") {
      kept += text.slice(done, start);
      done = end;
    }
    start = text.indexOf(LOCATION, end);
  }
  return kept + text.slice(done);
}

/** Behind the parenthesis that closes the one just before a position; -1 where the line ends first. */
function closing(text: string, position: number): number {
  let depth = 1;
  LOCATION_PART.lastIndex = position;
  for (let match = LOCATION_PART.exec(text); match; match = LOCATION_PART.exec(text)) {
    if (match[0] === "(") depth++;
    else if (match[0] === ")") {
      if (!--depth) return LOCATION_PART.lastIndex;
    } else if (match[0] === "\n") return -1;
  }
  return -1;
}

function count(text: string, sign: string, from: number, to: number): number {
  let found = 0;
  for (let at = text.indexOf(sign, from); at >= 0 && at < to; at = text.indexOf(sign, at + 1)) found++;
  return found;
}

function cleanLlvm(text: string): Cleaned {
  const bare = (text.includes(";") ? text.replace(LLVM_COMMENT, "") : text).replace(DEBUG_ATTACHMENT, "");
  const { lines, numbers } = numbered(bare.split("\n"));
  const kept = lines.map((line) => !("! d#".includes(line[0]!) && LLVM_DEBUG.test(line)));
  return { lines: lines.filter((_, index) => kept[index]), numbers: numbers.filter((_, index) => kept[index]) };
}

function cleanAssembly(text: string, kind: Kind): Cleaned {
  const comment = kind === "ptx" ? "//" : ";";
  const found: Cleaned = { lines: [], numbers: [] };
  let inDebugSection = false;
  text.split("\n").forEach((whole, index) => {
    const line = respaced(whole.includes(comment) ? beforeComment(whole, comment) : whole);
    if (!line) return;
    const section = line.includes(".section") ? SECTION.exec(line) : null;
    if (section) inDebugSection = section.groups!["name"]!.includes("debug");
    else if (inDebugSection && /^\s*(?:\.text|\.amdgpu_metadata|\.amdgcn_target)/.test(line)) inDebugSection = false;
    if (inDebugSection || ASM_DEBUG.test(line)) {
      if (inDebugSection && line.trim() === "}") inDebugSection = false;
      return;
    }
    found.lines.push(line);
    found.numbers.push(index + 1);
  });
  return found;
}

function respaced(line: string): string {
  // Assembly is indented by tabs, or by the addresses that went: four blanks say the same.
  const bare = line.trim().replaceAll(" \t", " ").replaceAll("\t", " ");
  return bare && (line[0] === " " || line[0] === "\t") ? `    ${bare}` : bare;
}

function beforeComment(line: string, comment: string): string {
  // A comment sign within a string is no comment.
  let start = line.indexOf(comment);
  while (start >= 0 && count(line, '"', 0, start) % 2) start = line.indexOf(comment, start + 1);
  return start < 0 ? line : line.slice(0, start);
}
