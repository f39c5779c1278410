// What of an operation's effects keeps its place in a block; as irscope/ir/body/effects.py.
import type { Kind } from "../data/model";
import type { Shape } from "./tokens";

export const NONE = 0;
export const READS = 1;
export const ANY = 2;

const PURE: Partial<Record<Kind, RegExp>> = {
  mlir: new RegExp(
    [
      String.raw`^(?:(?:arith|math|index|ub)\.|scf\.(?:for|if|while|yield|condition)$|tt\.(?:splat|unsplat|broadcast`,
      String.raw`|expand_dims|make_range|addptr|reshape|trans|cat|join|split|bitcast|fp_to_fp|int_to_ptr|ptr_to_int`,
      String.raw`|dot|dot_scaled|reduce|reduce\.return|scan|scan\.return|get_program_id|get_num_programs|histogram`,
      String.raw`|gather|mulhiui|clampf|precise_sqrt|precise_divf|make_tensor_ptr|advance)$|ttg\.(?:convert_layout`,
      String.raw`|memdesc_\w+|warp_id)$|gpu\.(?:thread_id|block_id|block_dim|grid_dim|lane_id)$`,
      String.raw`|nvvm\.read\.ptx\.sreg\.(?:n?tid|n?ctaid|laneid|warpid)|rocdl\.work(?:item|group)\.id\.`,
      String.raw`|llvm\.(?:mlir\.(?:constant|undef|poison|zero|addressof)|add|sub|mul|[su]div|[su]rem|and|or|xor|shl`,
      String.raw`|[al]shr|f(?:add|sub|mul|div|rem|neg)|[if]cmp|select|[sz]ext|trunc|fpext|fptrunc|[su]itofp`,
      String.raw`|fpto[su]i|bitcast|addrspacecast|inttoptr|ptrtoint|getelementptr|(?:insert|extract)(?:value`,
      String.raw`|element)|shufflevector|freeze|intr\.(?:fma|fmuladd|exp2?|log2?|sqrt|fabs|floor|ceil|(?:max|min)\w*`,
      String.raw`|[su](?:max|min)|abs))$)`,
    ].join(""),
  ),
  llvm: new RegExp(
    [
      String.raw`^(?:(?:add|sub|mul|[su]div|[su]rem|and|or|xor|shl|[al]shr|f(?:add|sub|mul|div|rem|neg)|[if]cmp`,
      String.raw`|select|[sz]ext|trunc|fpext|fptrunc|[su]itofp|fpto[su]i|bitcast|addrspacecast|inttoptr|ptrtoint`,
      String.raw`|getelementptr|(?:insert|extract)(?:value|element)|shufflevector|freeze|phi)$)`,
    ].join(""),
  ),
  ptx: new RegExp(
    [
      String.raw`^(?:(?:add|sub|mul|mad|fma|div|rem|abs|neg|min|max|and|or|xor|not|shl|shr|cvt|cvta|setp|selp|set`,
      String.raw`|slct|ex2|lg2|rcp|sqrt|rsqrt|sin|cos|tanh|prmt|bfe|bfi|bfind|lop3|shf|popc|clz|brev|mul24|mad24`,
      String.raw`|copysign|mov)(?:\.(?!cc\b)\w+)*$)`,
    ].join(""),
  ),
};
const READING: Partial<Record<Kind, RegExp>> = {
  mlir: new RegExp(
    [String.raw`^(?:(?:tt\.(?:load|descriptor_load|descriptor_gather)|ttg\.local_load|llvm\.load)$)`].join(""),
  ),
  llvm: new RegExp([String.raw`^(?:load$)`].join("")),
  ptx: new RegExp(
    [String.raw`^(?:ld(?:\.(?:global|shared|param|const|local|nc|weak|v\d|[busf]\d+|L[12]::\w+|shared::cta))*$)`].join(
      "",
    ),
  ),
};
// "llvm.load volatile \x01"   "tt.load \x01 {isVolatile = true}"
const ORDERED = /\b(?:volatile|atomic|isVolatile = true)\b/;
const PURE_CALL = new RegExp(
  [
    String.raw`@llvm\.(?:fma|fmuladd|exp2?|log2?|sqrt|fabs|floor|ceil|maxnum|minnum|maximum|minimum|[su](?:max`,
    String.raw`|min)|abs|ctpop|nvvm\.read\.ptx\.sreg\.(?:n?tid|n?ctaid|laneid|warpid)|amdgcn\.work(?:item`,
    String.raw`|group)\.id)\b`,
  ].join(""),
);
// "mov.u64 \x01, %clock64;"
const CLOCK = /%(?:clock|globaltimer|pm\d|reserved)/;

/** The effect of an operation itself, not of what stands in its regions; labels and ends of regions keep places. */
export function effectOf(shape: Shape, kind: Kind): number {
  const pure = PURE[kind];
  const { name, template } = shape;
  if (!pure || !name || name === "^" || name === "}") return ANY;
  if (shape.isFunction) return NONE;
  if (pure.test(name)) return kind === "ptx" && CLOCK.test(template) ? ANY : NONE;
  if (READING[kind]!.test(name)) return ORDERED.test(template) ? ANY : READS;
  if (name === "call" && kind === "llvm") {
    const isPure = PURE_CALL.test(template) || (template.includes(" asm ") && !template.includes("sideeffect"));
    return isPure ? NONE : ANY;
  }
  // A copy that nothing changes.
  if (name === "ttg.local_alloc") return template.includes("mutable") ? ANY : NONE;
  return ANY;
}
