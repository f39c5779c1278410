// What a line of each kind of text is made of; as irscope/ir/body/tokens.py has it.
import type { Kind } from "../data/model";
import { readAmdgcn } from "./amdgcn";
import { definesOf, spansOf, type Access } from "./registers";
import { readSass } from "./sass";

/** Stands for a value (an SSA value, a register) in a template. */
export const VALUE = "\x01";
/** Stands for a block label in a template. */
export const LABEL = "\x02";

const STRING = /"(?:[^"\\\n]|\\.)*"/g;

export interface Syntax {
  value: RegExp;
  /** null where labels are values, as in LLVM IR. */
  label: RegExp | null;
  /** Either of them. */
  name: RegExp;
  /** What stands for a definition elsewhere: `#blocked1` in MLIR, `#3` and `!7` in LLVM IR. */
  alias: RegExp | null;
  definition: RegExp | null;
  /** An alias or a name. */
  any: RegExp;
  /** Whether values may be renamed at will; physical registers may not. */
  isVirtual: boolean;
  /** Whether a second definition of a name makes another value. */
  hasVersions: boolean;
  /** Whether a name that nothing defines is matched by name alone. */
  keepsUnknown: boolean;
}

interface Names {
  value: string;
  label?: string;
  alias?: string;
  definition?: RegExp;
}

function syntax(names: Names, rules: Partial<Pick<Syntax, "isVirtual" | "hasVersions" | "keepsUnknown">> = {}): Syntax {
  const name = names.label ? `${names.value}|${names.label}` : names.value;
  return {
    value: new RegExp(names.value, "gm"),
    label: names.label ? new RegExp(names.label, "g") : null,
    name: new RegExp(name, "gm"),
    alias: names.alias ? new RegExp(names.alias, "g") : null,
    definition: names.definition ?? null,
    any: new RegExp(names.alias ? `${names.alias}|${name}` : name, "gm"),
    isVirtual: true,
    hasVersions: false,
    keepsUnknown: false,
    ...rules,
  };
}

const MLIR = syntax(
  {
    // %acc_69   %0   %c-1_i32
    value: String.raw`%[\w$.-]+`,
    // ^bb3
    label: String.raw`\^[\w$.-]+`,
    // tensor<128xf16, #blocked1>, but not #ttg.slice<…>
    alias: String.raw`[#!][A-Za-z_$][\w$]*(?![\w$.<])`,
    // #blocked = #ttg.blocked<{sizePerThread = [1, 8]}>
    definition: /^(?<name>[#!][A-Za-z_$][\w$]*) =(?: (?<value>.*))?$/,
  },
  { hasVersions: true, keepsUnknown: true },
);

const SYNTAXES: Partial<Record<Kind, Syntax>> = {
  mlir: MLIR,
  llvm: syntax(
    {
      // %12   %"a name"   and the label "12:"
      value: String.raw`%(?:"[^"\n]*"|[\w$.-]+)|^(?:[\w$.-]+|"[^"\n]*")(?=:)`,
      // #0   !12   but neither "#dbg_value" nor "!dbg"
      alias: String.raw`[#!]\d+\b`,
      // attributes #0 = { nounwind }   !3 = !{i32 1}
      definition: /^(?:attributes )?(?<name>[#!]\d+) = (?<value>.*)$/,
    },
    { keepsUnknown: true },
  ),
  // %r12   %rd3   %p1, but neither %tid.x nor %clock64     $L__BB0_2
  ptx: syntax({ value: String.raw`%(?!clock|envreg|pm\d|reserved)[a-z]+\d+\b(?!\.)`, label: String.raw`\$L\w+` }),
  // R12   UR4   P0   UP1   B0             .L_x_3
  sass: syntax(
    { value: String.raw`\b(?:U?[RP]|B)\d+\b`, label: String.raw`\.L_\w+` },
    { isVirtual: false, hasVersions: true, keepsUnknown: true },
  ),
  // v12   s[4:7]   a3                     .LBB0_2
  amdgcn: syntax(
    { value: String.raw`\b[vas](?:\d+\b|\[\d+:\d+\])`, label: String.raw`\.L\w+` },
    { isVirtual: false, hasVersions: true, keepsUnknown: true },
  ),
};

/** How that kind of text writes its names. */
export function syntaxOf(kind: Kind): Syntax {
  return SYNTAXES[kind] ?? MLIR;
}

/** What all lines with one template share. */
export interface Shape {
  template: string;
  /** The operation or mnemonic; "}" for the end of a region, "^" for a label. */
  name: string;
  holes: number;
  /** Which of the holes define a value or a label, 0-based. */
  defines: number[];
  opens: boolean;
  closes: boolean;
  /** Whether value names begin anew here. */
  isFunction: boolean;
  /** Of an instruction on physical registers: what it does with them. */
  access: Access | null;
  /** How many of a line's values each hole stands for; behind them come those that have no hole. */
  spans: number[];
}

type Reading = [name: string, defines: number[], isFunction: boolean];

/** Reads one template. */
export function shapeOf(template: string, kind: Kind): Shape {
  const bare = template.includes('"') ? template.replace(STRING, '""') : template;
  const holes: number[] = [];
  for (let at = 0; at < template.length; at++) {
    const code = template.charCodeAt(at);
    if (code === 1 || code === 2) holes.push(at);
  }
  const read = kind === "mlir" ? mlir : kind === "llvm" ? llvm : assembly;
  const [name, defines, isFunction] = read(template, holes, kind);
  const readAccess = kind === "sass" ? readSass : kind === "amdgcn" ? readAmdgcn : null;
  const braces = !readAccess;
  const access = readAccess && name && !".^}".includes(name[0]!) ? readAccess(template) : null;
  return {
    template,
    name,
    holes: holes.length,
    defines: access ? definesOf(access) : defines,
    opens: braces && bare.endsWith("{"),
    closes: braces && bare.startsWith("}"),
    isFunction,
    access,
    spans: access ? spansOf(access) : holes.map(() => 1),
  };
}

/** A sticky pattern at a position. */
function at(pattern: RegExp, text: string, position: number): RegExpExecArray | null {
  pattern.lastIndex = position;
  return pattern.exec(text);
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

// "\1:2 = scf.for …"   "\1, \1 = tt.split …"
const RESULTS = /^\x01(?::\d+)?(?:, \x01(?::\d+)?)* = /;
// 'arith.addi \1, \1'   '"tt.reduce"(\1) …'   '} else {'
const OPERATION = /"(?<quoted>[^"]*)"|(?<plain>[A-Za-z_][\w.$-]*)/y;

function mlir(template: string, holes: number[]): Reading {
  const start = RESULTS.exec(template)?.[0].length ?? 0;
  let count = 0;
  while (count < holes.length && holes[count]! < start) count++;
  const defines = upTo(count);
  for (let index = count; index < holes.length; index++) {
    const hole = holes[index]!;
    if (template[hole] === LABEL) {
      if (hole === 0) defines.push(index);
    } else if (template.startsWith(" = ", hole + 1) || template.startsWith(": ", hole + 1)) {
      // "scf.for \1 = \1 to \1 iter_args(\1 = \1)", "tt.func @f(\1: i32)", "\2(\1: i32):"
      defines.push(index);
    }
  }
  if (template.startsWith("}")) return ["}", defines, false];
  if (template.startsWith(LABEL)) return ["^", defines, false];
  const groups = at(OPERATION, template, start)?.groups;
  const name = groups?.["quoted"] || groups?.["plain"] || "";
  return [name === "module" ? "builtin.module" : name, defines, name.endsWith("func")];
}

// "\1 = tail call fast float @llvm.exp2.f32(float \1)"
const LLVM_FLAGS = new Set(["tail", "musttail", "notail"]);
const LLVM_WORD = /[A-Za-z_][\w.]*/g;

function llvm(template: string, holes: number[]): Reading {
  if (template.startsWith("}")) return ["}", [], false];
  if (template.startsWith(`${VALUE}:`) || template.startsWith(`${LABEL}:`)) return ["^", [0], false];
  // "@global_smem = external …", "!llvm.module.flags = …", "$name = comdat any"
  if (/^[@!$]/.test(template)) return [template[0]!, [], false];
  const start = template.startsWith(`${VALUE} = `);
  const from = start ? 4 : 0;
  const words = template.slice(from, from + 80).match(LLVM_WORD) ?? [];
  const name = words.find((word) => !LLVM_FLAGS.has(word)) ?? "";
  if (name === "define") return [name, upTo(holes.length), true];
  return [name, start ? [0] : [], false];
}

// "@\1 bra \2;"   "@!\1 mov.b32 \1, \1;"   "@!\1UP BRA \2"
const PREDICATE = /^@!?(?:\x01(?:U?P)?|U?PT) */;
// "softmax:"   "amdhsa.target:   amdgcn-amd-amdhsa"
const NAME_LINE = /^[\w.$-]+:(?: |$)/;
const MNEMONIC = /[A-Za-z_.][\w.]*/y;
// "{\1, \1}, [\1];"   "\1|\1, \1"   "\1, \1"   "-\1" is no destination.
const DESTINATION = / *(?:\{[^}]*\}|\x01(?:\|\x01)?)/y;

const PTX_NO_RESULT = new Set(
  (
    "st red bra brx ret exit trap bar barrier membar fence cp prefetch prefetchu mbarrier wgmma call stmatrix setmaxnreg" +
    " griddepcontrol nanosleep pragma"
  ).split(" "),
);

function assembly(template: string, holes: number[], kind: Kind): Reading {
  if (template.startsWith("}")) return ["}", [], false];
  if (template.startsWith(LABEL)) return ["^", template[1] === ":" ? [0] : [], false];
  if (NAME_LINE.test(template)) return ["^", [], false];
  const mnemonic = at(MNEMONIC, template, PREDICATE.exec(template)?.[0].length ?? 0);
  if (!mnemonic) return ["", [], false];
  const name = mnemonic[0];
  if (name.startsWith(".")) {
    // ".reg", ".param", ".visible .entry softmax("
    return [name, [], template.includes(".entry") || template.includes(".func") || name === ".type"];
  }
  const base = name.split(".", 1)[0]!;
  if (PTX_NO_RESULT.has(base) || kind === "sass" || kind === "amdgcn") return [name, [], false];
  const destination = at(DESTINATION, template, mnemonic.index + name.length);
  if (!destination) return [name, [], false];
  const [from, to] = [destination.index, destination.index + destination[0].length];
  const defines = holes.flatMap((hole, index) => (from <= hole && hole < to ? [index] : []));
  return [name, defines, false];
}
