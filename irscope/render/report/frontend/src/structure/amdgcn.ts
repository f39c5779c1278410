// Which registers an AMD GPU instruction reads and writes; the rules, and their sources, of
// irscope/ir/asm/register_amdgcn.py.
import { access, splitOperands, type Access, type ExecChange, type Flow, type Mode } from "./registers";

const LINE = /^(?:(?<opcode>[a-z]\w*)(?:\s+(?<operands>.*))?$)/;
const TOKEN = /\x01(?<file>[vas])(?<width>\d{0,4})|\x02|\b(?<fixed>(?:vcc|exec)(?:_lo|_hi)?|m0|scc)\b/g;
const PLAIN = /^(?:(?:\x01[vas]\d*|(?:vcc|exec)(?:_lo|_hi)?|m0|scc|null|off|flat_scratch\w*|ttmp\w*)(?:\.[lh])?$)/;
const KNOWN = [
  /^(?:v_(?:accvgpr|add|add3|addc|alignbit|alignbyte|and|ashr|ashrrev|bcnt|bfe|bfi|bfm|bfrev|bitop3|ceil|cls|clz|cmp|cmpx|cndmask|cos|ctz|cubeid|cubema|cubesc|cubetc|cvt|div|dot\w+|dual|exp|ffbh|ffbl|floor|fma|fmaak|fmac|fmamk|fract|frexp|ldexp|lerp|log|lshl|lshlrev|lshr|lshrrev|mac|mad|madak|madmk|max|max3|maximum|maximum3|maximumminimum|maxmin|mbcnt|med3|mfma|min|min3|minimum|minimum3|minimummaximum|minmax|mov|mqsad|msad|mul|mullit|nop|not|or|or3|pack|perm|permlane16|permlane32|permlane64|permlanex16|pk|prng|qsad|rcp|readfirstlane|readlane|rndne|rsq|s|sad|sat|sin|smfmac|sqrt|sub|subb|subbrev|subrev|swap|swmmac|trig|trunc|wmma|writelane|xad|xnor|xor|xor3)(?=_|$))/,
  /^(?:s_(?:abs|absdiff|add|addc|addk|and|andn1|andn2|ashr|barrier|bcnt0|bcnt1|bfe|bfm|bitcmp0|bitcmp1|bitreplicate|bitset0|bitset1|branch|brev|buffer_load|buffer_prefetch|buffer_store|cbranch|ceil|clause|clz|cls|cmov|cmovk|cmp|cmpk|code|cselect|ctz|cvt|dcache|delay|denorm|endpgm|ff0|ff1|flbit|floor|fmaak|fmac|fmamk|get|getpc|getreg|gl1|icache|inst|load|lshl|lshl1|lshl2|lshl3|lshl4|lshr|max|maximum|memrealtime|memtime|min|minimum|mov|movk|mul|mulk|nand|nop|nor|not|or|orn1|orn2|pack|prefetch|quadmask|rndne|round|scratch|sendmsg|sendmsghalt|set|sethalt|setkill|setpc|setprio|setreg|sext|singleuse|sleep|store|sub|subb|trap|trunc|ttracedata|version|wait|waitcnt|wakeup|wqm|xnor|xor)(?=_|$))/,
  /^(?:(?:ds|buffer|tbuffer|global|flat|scratch)_)/,
];
const INDIRECT = /^(?:[vs]_(?:movrel|swaprel|set_gpr_idx)|s_cbranch_(?:g_fork|i_fork|join))/;
const NO_RESULT =
  /^(?:s_(?:cmpk?|bitcmp[01]|c?branch|barrier(?!_get)|waitcnt|wait|endpgm|nop|set\w*|sleep|sendmsg(?!_rtn)|sendmsghalt|store|buffer_store|scratch_store|dcache|icache|gl1|prefetch|buffer_prefetch|clause|code|delay|denorm|round|trap|ttracedata|version|wakeup|inst|singleuse)(?=_|$)|v_(?:nop|clrexcp|pipeflush)$|(?!v_).*_(?:store|write)(?=_|\d|$)|ds_(?!.*rtn)(?!read|load|b?permute|swizzle|consume|append|ordered)|buffer_(?:inv|wb|gl)|global_(?:inv|wb)|(?:global|flat|scratch|buffer)_load_lds_)/;
const ATOMIC = /^(?:(?<space>buffer|tbuffer|global|flat)_atomic_)/;
const TO_SHARED = /(?:buffer|global|scratch)_load_.*(?:_lds\b|\blds\b)|_load_lds_/;
const TWO_RESULTS = /^(?:v_(?:\w+_co_|div_scale|mad_[iu]64_[iu]32|mad_co_))/;
const OLD_CARRY = /^(?:v_(?:add|sub|subrev|addc|subb|subbrev)_u32(?:_|$))/;
const MODIFIED =
  /^(?:v_(?:mac|fmac|madmix|mad_mix(?:lo|hi)|fma_mix(?:lo|hi)|pk_fmac|smfmac|swmmac|swap|permlane\w*|writelane|dot\w+c_|dot2acc|cvt_sr|cvt_scalef32|cvt_pk_(?:fp8|bf8)|dual_fmac|dual_dot2acc|dual_dot2c|ashr_pk)|s_(?:addk|mulk|fmac|bitset[01]|cmovk?)(?=_|$)|\w+_d16(?=_|$))/;
const PART =
  /^(?:\w*_dpp8?\b|.*dst_unused:UNUSED_PRESERVE|(?!v_(?:pk|dot|fma_mix|mad_mix|mfma|wmma))\w+ .*\bop_sel:\[(?:\d,)+1\])/;
const BOTH_MODIFIED = /^(?:v_(?:swap_b|permlane\d+_swap))/;
const SCC_WRITTEN =
  /^(?:s_(?:absdiff|abs|addc|addk|add|subb|sub|andn[12]|and|nand|nor|not|orn[12]|or|xnor|xor|ashr|lshr|lshl|lshl[1-4]_add|bcnt[01]|bfe|bitcmp[01]|cmpk?|max|min|wqm|setvskip|barrier_leave|barrier_signal_isfirst)(?=_|$))/;
const SCC_KEPT = /^(?:s_(?:add|sub|max|min)_(?:f16|f32|nc_u64|u64|num_f\d+)$)/;
const SCC_READ = /^(?:s_(?:addc|subb|add_co_ci|sub_co_ci|cselect|cmovk?|cbranch_scc[01])(?=_|$))/;
const VCC_READ = /^(?:v_div_fmas|v_dual_cndmask|s_cbranch_vcc)/;
const M0_READ = /^(?:s_sendmsg|s_ttracedata|ds_(?!b?permute|swizzle)|\w+_load_lds_|.*\blds\b)/;
const EXEC_READ = /^(?:v_(?!readlane|writelane)|(?:ds|buffer|tbuffer|global|flat|scratch)_|s_cbranch_exec|s_sendmsg)/;
const EXEC_SAVED = /^(?:s_\w+_(?:save|wr)exec_b(?:32|64)$)/;
const SHRINKS = /^(?:s_(?:and_(?:save|wr)exec|and_b|andn2_b|and_not1_b))/;
const RETURNS = /\b(?:glc|sc0|th:TH_ATOMIC\w*RETURN)\b/;
/** Registers a thread can have. */
const WIDEST = 512;
const PAIRS: Record<string, string[]> = { vcc: ["vcc_lo", "vcc_hi"], exec: ["exec_lo", "exec_hi"] };

/** What a line does with registers; null where it is no instruction. */
export function readAmdgcn(template: string): Access | null {
  if (!template.includes(" :: ")) return single(template);
  // Two operations issued as one read their operands before either writes.
  const halves = template.split(" :: ").flatMap((part) => single(part) ?? []);
  return access({
    holes: halves.flatMap((half) => half.holes),
    implicit: halves.flatMap((half) => half.implicit),
    isPartial: halves.some((half) => half.isPartial),
    isVector: halves.some((half) => half.isVector),
    isUnknown: halves.some((half) => half.isUnknown),
  });
}

function single(template: string): Access | null {
  const groups = LINE.exec(template)?.groups;
  if (!groups) return null;
  const opcode = groups["opcode"]!;
  const operands = splitOperands(groups["operands"] ?? "");
  if (!KNOWN.some((known) => known.test(opcode)) || INDIRECT.test(opcode)) return unknown(template);
  const modes = modesOf(opcode, operands, template);
  const holes: [number, Mode][] = [];
  const implicit: [string, Mode][] = [];
  let isVector = false;
  operands.forEach((operand, index) => {
    const mode = modes[index] ?? "r";
    for (const { groups: token } of operand.matchAll(TOKEN)) {
      const fixed = token!["fixed"];
      const file = token!["file"];
      if (fixed) for (const name of PAIRS[fixed] ?? [fixed]) implicit.push([name, mode]);
      else if (file)
        holes.push([
          Math.min(Number(token!["width"] || 1), WIDEST),
          mode === "w" && /\.[lh]$/.test(operand) ? "m" : mode,
        ]);
      else holes.push([0, "r"]);
      isVector ||= mode !== "r" && (file === "v" || file === "a");
    }
  });
  implicit.push(...implicitOf(opcode, template, implicit));
  const execChange = execChangeOf(opcode, operands, modes);
  return access({ holes, implicit, isVector, execChange, flow: flowOf(opcode) });
}

function unknown(template: string): Access {
  const holes: [number, Mode][] = [];
  for (const { groups } of template.matchAll(TOKEN)) {
    if (groups!["file"]) holes.push([Math.min(Number(groups!["width"] || 1), WIDEST), "m"]);
    else if (!groups!["fixed"]) holes.push([0, "r"]);
  }
  return access({ holes, isPartial: true, execChange: "any", isUnknown: true });
}

/** How the first operands are used. */
function modesOf(opcode: string, operands: string[], template: string): Mode[] {
  if (!operands.length || !PLAIN.test(operands[0]!)) return [];
  const space = ATOMIC.exec(opcode)?.groups!["space"];
  if (space) return RETURNS.test(template) ? [space.includes("buffer") ? "m" : "w"] : [];
  if (NO_RESULT.test(opcode) || TO_SHARED.test(template)) return [];
  if (opcode.startsWith("v_cmpx") && operands.length < 3) return [];
  if (BOTH_MODIFIED.test(opcode)) return ["m", "m"];
  const first: Mode = MODIFIED.test(opcode) || PART.test(template) ? "m" : "w";
  const isOldCarry = OLD_CARRY.test(opcode) && operands.length > 3 && operands[1]!.startsWith("vcc");
  return TWO_RESULTS.test(opcode) || isOldCarry ? [first, "w"] : [first];
}

function implicitOf(opcode: string, template: string, named: [string, Mode][]): [string, Mode][] {
  const found: [string, Mode][] = [];
  if (SCC_READ.test(opcode)) found.push(["scc", "r"]);
  if (SCC_WRITTEN.test(opcode) && (!SCC_KEPT.test(opcode) || opcode.startsWith("s_cmp"))) found.push(["scc", "w"]);
  if (VCC_READ.test(opcode)) found.push(["vcc_lo", "r"], ["vcc_hi", "r"]);
  if (M0_READ.test(template) && !named.some(([name, mode]) => name === "m0" && mode === "r")) found.push(["m0", "r"]);
  if (EXEC_SAVED.test(opcode) || opcode.startsWith("v_cmpx")) found.push(["exec_lo", "m"], ["exec_hi", "m"]);
  else if (EXEC_READ.test(opcode)) found.push(["exec_lo", "r"], ["exec_hi", "r"]);
  return found;
}

function execChangeOf(opcode: string, operands: string[], modes: Mode[]): ExecChange {
  if (opcode.startsWith("v_cmpx")) return "shrinks";
  if (EXEC_SAVED.test(opcode)) return SHRINKS.test(opcode) ? "shrinks" : "any";
  if (!modes.length || !operands[0]!.startsWith("exec")) return "";
  const sources = operands.slice(1);
  if (sources.includes(operands[0]!)) {
    if (SHRINKS.test(opcode)) return "shrinks";
    if (opcode.startsWith("s_or_b")) return "grows";
  }
  return opcode.startsWith("s_mov_b") && sources.length === 1 && sources[0] === "-1" ? "fills" : "any";
}

function flowOf(opcode: string): Flow {
  if (opcode === "s_branch") return "jump";
  if (opcode.startsWith("s_cbranch")) return "branch";
  return /^s_(?:endpgm|setpc|rfe)/.test(opcode) ? "end" : "next";
}
