// Which registers a SASS instruction reads and writes; the rules, and their sources, of irscope/ir/asm/register_sass.py.
import { access, splitOperands, type Access, type Flow, type Mode } from "./registers";

const LINE = /^(?:(?:(?<guard>@!?(?:\x01U?P|U?PT))\s+)?(?<opcode>[A-Z][\w.]*)(?:\s+(?<operands>.*?))?\s*;?$)/;
const HOLE = /(?<before>\w*\[?)(?:\x01(?<file>UR|UP|R|P|B)|\x02)(?<after>(?:\.\w+)*)/g;
const PLAIN = /^(?:(?:\x01(?<hole>UR|UP|R|P|B)|(?<zero>URZ|UPT|RZ|PT))(?:\.\w+)*$)/;
const ZERO: Record<string, string> = { URZ: "UR", UPT: "UP", RZ: "R", PT: "P" };
/** Registers a thread can have. */
const WIDEST = 256;
const MASK = /^(?:0x[0-9a-f]{1,4}$)/;
const words = (...lines: string[]) => new Set(lines.flatMap((line) => line.split(" ")));
const NO_RESULT = words(
  "ACQBULK ARRIVES BAR BPT BRA BREAK BRX BRXU BSYNC CALL CCTL CCTLL CCTLT CGAERRBAR CSMTEST DEPBAR ENDCOLLECTIVE",
  "ERRBAR EXIT FENCE JMP JMX JMXU KILL LDGDEPBAR LDGMC LDGSTS MEMBAR NANOSLEEP NOP PMTRIG PREEXIT RED REDAS REDG",
  "RET RPCMOV RTT SETCTAID SETLMEMBASE ST STG STL STS STSM STTM SURED SUST UBLKCP UBLKPF UBLKRED UBLKSUM",
  "UCGABAR_ARV UCGABAR_WAIT UMEMSETS USETMAXREG UTCBAR UTCCP UTCHMMA UTCIMMA UTCMXQMMA UTCOMMA UTCQMMA UTCSHIFT",
  "UTMACCTL UTMACMDFLUSH UTMALDG UTMAPF UTMAREDG UTMASTG UTMEMBAR UVIRTCOUNT WARPGROUP WARPGROUPSET WARPSYNC",
  "YIELD",
);
const ONE_RESULT = words("CSMTEST FCHK P2R QSPC R2P SYNCS UP2UR USETSHMSZ");
const KNOWN = words(
  "ACQBULK ARRIVES ATOM ATOMG ATOMGAS ATOMS B2R BAR BMOV BMSK BPT BRA BREAK BREV BRX BRXU BSSY BSYNC CALL CCTL",
  "CCTLL CCTLT CGAERRBAR CREDUX CS2R CS2UR DADD DEPBAR DFMA DMNMX DMUL DSET DSETP ELECT ENDCOLLECTIVE ERRBAR",
  "EXIT F2F F2FP F2I F2IP FADD FADD2 FADD32I FCHK FENCE FFMA FFMA2 FFMA32I FHADD FHFMA FLO FMNMX FMNMX3 FMUL",
  "FMUL2 FMUL32I FRND FSEL FSET FSETP FSWZADD GETLMEMBASE HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I",
  "HSET2 HSETP2 I2F I2FP I2I I2IP IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I",
  "ISETP JMP JMX JMXU KILL LD LDC LDCU LDG LDGDEPBAR LDGMC LDGSTS LDL LDS LDSM LDTM LEA LEPC LOP LOP3 LOP32I",
  "MATCH MEMBAR MOV MOV32I MOVM MUFU NANOSLEEP NOP P2R PLOP3 PMTRIG POPC PREEXIT PRMT PSETP QSPC R2B R2P R2UR",
  "RED REDAS REDG REDUX RET RPCMOV RTT S2R S2UR SEL SETCTAID SETLMEMBASE SGXT SHF SHFL SHL SHR ST STG STL STS",
  "STSM STTM SYNCS UBLKCP UBLKPF UBLKRED UBMSK UBREV UCGABAR_ARV UCGABAR_WAIT UCLEA UF2F UF2FP UF2I UF2IP UFADD",
  "UFFMA UFLO UFMNMX UFMUL UFRND UFSEL UFSET UFSETP UGETNEXTWORKID UI2F UI2FP UI2I UI2IP UIABS UIADD3 UIMAD",
  "UIMNMX UISETP ULDC ULEA ULOP ULOP3 ULOP32I UMOV UP2UR UPLOP3 UPOPC UPRMT UPSETP UR2UP USEL USETMAXREG USGXT",
  "USHF USHL USHR UTCATOMSWS UTCBAR UTCCP UTCHMMA UTCIMMA UTCMXQMMA UTCOMMA UTCQMMA UTCSHIFT UTMACCTL",
  "UTMACMDFLUSH UTMALDG UTMAPF UTMAREDG UTMASTG UVIADD UVIMNMX UVIRTCOUNT VABSDIFF VABSDIFF4 VHMNMX VIADD",
  "VIADDMNMX VIMNMX VIMNMX3 VOTE VOTEU WARPGROUP WARPGROUPSET WARPSYNC YIELD",
);
const GLOBAL = words("ATOM ATOMG CCTL LD LDG LDGSTS QSPC RED REDG ST STG");
const TWO_PREDICATES = /^(?:U?(?:[FIDH]SETP2?|HSETP2|PLOP3|PSETP|ISETP|FSETP|DSETP)$)/;
const MATRIX =
  /^(?:[A-Z]*?(?<kind>HMMA|IMMA|BMMA|DMMA|QMMA|OMMA|[HIQB]GMMA)(?:\.(?!\d)\w+)*\.(?<shape>\d{1,3}x\d{1,3}x\d{1,3}|16816|1688|1684|16832|16864|168128|168256|884|8816|8832|88128)(?<types>(?:\.\w+)*))/;
const SHAPES: Record<string, [number, number, number]> = {
  "16816": [16, 8, 16],
  "1688": [16, 8, 8],
  "1684": [16, 8, 4],
  "16832": [16, 8, 32],
  "16864": [16, 8, 64],
  "168128": [16, 8, 128],
  "168256": [16, 8, 256],
  "884": [8, 8, 4],
  "8816": [8, 8, 16],
  "8832": [8, 8, 32],
  "88128": [8, 8, 128],
};
const BITS: Record<string, number> = { D: 64, H: 16, I: 8, Q: 8, O: 4, B: 1 };
const STATED = /\.(?:(?<bits>64|128|256)|[USF](?<number>64)|(?:B?F(?<element>16|32)x(?<count>\d{1,2})))(?![\w])/;
const COUNT = /\.(?<count>[24])$/;
const TENSOR = /\.x(?<count>\d{1,3})(?!\d)/;
const ACROSS = /\.\d+dp(?<bits>\d{1,3})bit/;
const DIMENSIONS = /\.(?<count>[1-5])D/;
const TYPE = /\.(?<type>[USF]64|[USF]32|[USBF]+16|[US]8|F16)(?=\.|$)/g;
const WIDE = /^(?:(?:U?(?:IADD|IADD3|MOV|SEL|LOP3|VIADD))\.64\b|U?ISETP\.\w+\.[US]64\b|U?V?IMNMX\.[US]64\b)/;
const TENSOR_ROW: Record<string, number> = { "64": 1, "128": 2, "256": 4, "32": 1 };

/** What a line does with registers; null where it is no instruction. */
export function readSass(template: string): Access | null {
  const groups = LINE.exec(template)?.groups;
  if (!groups) return null;
  const guard = groups["guard"] ?? "";
  const opcode = groups["opcode"]!;
  const operands = splitOperands(groups["operands"] ?? "");
  const base = opcode.split(".", 1)[0]!;
  const isPartial = guard !== "" && guard !== "@PT" && guard !== "@UPT";
  if (!(KNOWN.has(base) || MATRIX.test(opcode)) || /^CALL\.(?:ABS|ICALL)/.test(opcode)) return unknown(template);
  const results = resultsOf(base, operands);
  const widths = new Widths(opcode, base, operands, results);
  const holes: [number, Mode][] = guard.includes("\x01") ? [[1, "r"]] : [];
  operands.forEach((operand, index) => {
    for (const { groups: hole } of operand.matchAll(HOLE)) {
      const file = hole!["file"];
      if (!file) {
        holes.push([0, "r"]);
        continue;
      }
      const mode = results.has(index) ? "w" : base === "LDGSTS" && file === "P" ? "m" : "r";
      holes.push([Math.min(widths.of(index, hole!["before"]!, file, hole!["after"]!), WIDEST), mode]);
    }
  });
  const implicit = implicitOf(base, operands);
  if (GLOBAL.has(base) && !template.includes("desc[") && template.includes("\x01R.64")) {
    // Before sm_90 the text does not name the pair of uniform registers that holds the memory descriptor.
    for (let number = 0; number < 63; number++) implicit.push([`UR${number}`, "r"]);
  }
  return access({ holes, implicit, isPartial, flow: flowOf(base, opcode, operands, isPartial) });
}

function unknown(template: string): Access {
  // It may write what it names, and as many registers behind it as the widest plain operand has.
  const holes = [...template.matchAll(HOLE)].map(({ groups }): [number, Mode] => {
    const file = groups!["file"];
    return file ? [file === "R" || file === "UR" ? 8 : 1, "m"] : [0, "r"];
  });
  return access({ holes, isPartial: true, isUnknown: true });
}

const upTo = (count: number) => new Set(Array.from({ length: count }, (_, index) => index));
const isPredicate = (file: string | null | undefined) => file === "P" || file === "UP";
const isGeneral = (file: string | null | undefined) => file === "R" || file === "UR";

/** Which operands are destinations. */
function resultsOf(base: string, operands: string[]): Set<number> {
  if (NO_RESULT.has(base) || !operands.length) return new Set();
  const files = operands.map(fileOf);
  if (TWO_PREDICATES.test(base)) return new Set([0, 1].filter((index) => isPredicate(files[index])));
  if (/^[UV]?IMNMX$/.test(base) && files[0] === "P" && files[1] === "P") return upTo(3);
  if (ONE_RESULT.has(base)) return upTo(files[0] ? 1 : 0);
  if (base === "VOTE" || base === "VOTEU") return upTo(isGeneral(files[0]) && isPredicate(files[1]) ? 2 : 1);
  // A predicate, then the register: SHFL, ATOMG, LOP3, ELECT.
  if (isPredicate(files[0])) return upTo(isGeneral(files[1]) ? 2 : 1);
  if (!files[0]) return new Set();
  // A register, then its carries: IADD3 R2, P0, P1, R4, R5, R6.
  let end = 1;
  while (end < files.length && end < 3 && isPredicate(files[end])) end++;
  if (base === "LDG" && isGeneral(files[end])) end++;
  return upTo(end);
}

function fileOf(operand: string): string | null {
  const groups = PLAIN.exec(operand)?.groups;
  return groups ? (groups["hole"] ?? ZERO[groups["zero"]!]!) : null;
}

/** P2R R4, PR, RZ, 0x7f: the predicates that the mask names. */
function implicitOf(base: string, operands: string[]): [string, Mode][] {
  if (!["P2R", "UP2UR", "R2P", "UR2UP"].includes(base)) return [];
  const last = operands.at(-1)!;
  const mask = MASK.test(last) ? Number.parseInt(last, 16) : 0x7f;
  const mode: Mode = base === "R2P" || base === "UR2UP" ? "m" : "r";
  const found: [string, Mode][] = [];
  for (let number = 0; number < 7; number++) {
    if ((mask >> number) & 1) found.push([`${base.startsWith("U") ? "UP" : "P"}${number}`, mode]);
  }
  return found;
}

function flowOf(base: string, opcode: string, operands: string[], isGuarded: boolean): Flow {
  if (base === "EXIT" || base === "KILL") return isGuarded || operands.length ? "next" : "end";
  if (base === "RET") return "return";
  if (base === "CALL") return "call";
  if (["BRX", "BRXU", "JMX", "JMXU"].includes(base)) return "anywhere";
  if (base === "BRA" || base === "JMP") return isGuarded || opcode !== base || operands.length > 1 ? "branch" : "jump";
  return "next";
}

/** How many registers each operand of one instruction has. */
class Widths {
  private readonly firstSource: number;
  private readonly matrix: RegExpExecArray | null;

  constructor(
    private readonly opcode: string,
    private readonly base: string,
    private readonly operands: string[],
    private readonly results: Set<number>,
  ) {
    this.firstSource = Math.max(-1, ...results) + 1;
    this.matrix = MATRIX.exec(opcode);
  }

  /** The registers of a hole in operand `index`. */
  of(index: number, before: string, file: string, after: string): number {
    if (file === "P" || file === "UP" || file === "B") return 1;
    if (before.endsWith("[") || this.operands[index]!.includes("[")) return this.address(index, before, file, after);
    if (this.matrix) return this.fragment(this.matrix.groups!, index);
    return this.plain(index, after);
  }

  private address(index: number, before: string, file: string, after: string): number {
    const { base, opcode } = this;
    if (before.startsWith("gdesc")) return base.includes("GMMA") ? 4 : 2;
    if (before.startsWith("desc") || before.startsWith("cx")) return 2;
    if (base.startsWith("UTMA")) return this.tensorMap(index);
    if (["UBLKCP", "UBLKPF", "UBLKRED"].includes(base) || after.includes(".64")) return 2;
    if (base === "CCTL" && opcode.includes(".E")) return 2;
    const isGlobal = GLOBAL.has(base) && (base !== "LDGSTS" || index === 1);
    if (isGlobal && opcode.includes(".E") && !after && before === "[") return 2;
    return file === "UR" && isGlobal ? 2 : 1;
  }

  private tensorMap(index: number): number {
    if (index || this.base === "UTMACCTL") return 2;
    const count = DIMENSIONS.exec(this.opcode)?.groups!["count"] ?? "5";
    return Number(count) + (this.base === "UTMALDG" ? 2 : 1);
  }

  private fragment(groups: Record<string, string | undefined>, index: number): number {
    const shape = groups["shape"]!;
    const kind = groups["kind"]!;
    const [m, n, k] = (shape.includes("x") ? shape.split("x").map(Number) : SHAPES[shape]!) as [number, number, number];
    const types = groups["types"]!.split(".");
    const lanes = kind.includes("GMMA") ? 128 : 32;
    const bits = bitsOf(kind[0]!, types);
    let place = index - this.firstSource;
    if (this.operands[this.firstSource]!.includes("gdesc")) place++; // one descriptor for both matrices
    const registers = (size: number) => Math.max(1, Math.floor(Math.floor(size / 32) / lanes));
    if (this.results.has(index) || place === 2) {
      return registers(m * n * (kind === "DMMA" ? 64 : types[1] === "F16" ? 16 : 32));
    }
    if (place === 0) {
      const half = this.opcode.includes(".SP") ? 2 : 1;
      return Math.max(1, Math.floor(Math.floor((m * k * bits) / (32 * half)) / lanes));
    }
    return place === 1 ? registers(n * k * bits) : 1;
  }

  private plain(index: number, after: string): number {
    const { base, opcode } = this;
    const isResult = this.results.has(index);
    const place = index - this.firstSource;
    if (WIDE.test(opcode)) return 2;
    if (["DADD", "DMUL", "DFMA", "DMNMX", "DSETP", "DSET"].includes(base)) return base === "DSET" && isResult ? 1 : 2;
    if (["FADD2", "FMUL2", "FFMA2"].includes(base)) return isResult || after.includes(".F32x2") ? 2 : 1;
    if (["IMAD", "UIMAD", "IMUL"].includes(base) && opcode.includes(".WIDE")) return isResult || place === 2 ? 2 : 1;
    // With a carry out, IMAD.HI adds to 64 bits.
    if (["IMAD", "UIMAD"].includes(base) && opcode.includes(".HI") && place === 2) return this.results.size > 1 ? 2 : 1;
    if (["F2F", "F2I", "I2F", "FRND", "UF2F", "UF2I", "UI2F"].includes(base)) {
      return this.conversion(base.replace(/^U/, ""), isResult);
    }
    if (base === "CS2R" || base === "CS2UR") return opcode.includes(".32") ? 1 : 2;
    if (["LEPC", "GETLMEMBASE", "RET", "BRX", "BRXU", "JMX", "JMXU", "CALL", "SETLMEMBASE"].includes(base)) return 2;
    if (base === "LDSM" || base === "STSM") return Number(COUNT.exec(opcode)?.groups!["count"] ?? 1);
    if (base === "LDTM" || base === "STTM") return this.tensorMemory();
    if (base === "SYNCS")
      return (opcode.includes(".64") && opcode.includes(".EXCH")) || opcode.includes(".CAS") ? 2 : 1;
    if (["UTCATOMSWS", "UBLKCP", "UBLKRED", "REDUX"].includes(base)) return 1;
    if (base === "ULDC" || /^(?:LD|ST|ATOM|RED)/.test(base)) return this.stated();
    return 1;
  }

  private stated(): number {
    if (this.opcode.includes(".ENL2")) return 4;
    const groups = STATED.exec(this.opcode)?.groups;
    if (!groups) return 1;
    if (groups["element"]) return Math.max(1, Math.floor((Number(groups["element"]) * Number(groups["count"])) / 32));
    return Math.floor(Number(groups["bits"] ?? groups["number"]) / 32);
  }

  private conversion(base: string, isResult: boolean): number {
    const types = [...this.opcode.matchAll(TYPE)].map(({ groups }) => groups!["type"]!);
    if (base === "F2F" || base === "FRND") {
      const own = (isResult ? types[0] : types.at(-1)) ?? "F32";
      return own.endsWith("64") ? 2 : 1;
    }
    const isFloat = (base === "I2F") === isResult;
    const own = types.find((name) => (isFloat ? name.startsWith("F") : "US".includes(name[0]!)));
    return own?.endsWith("64") ? 2 : 1;
  }

  private tensorMemory(): number {
    const across = ACROSS.exec(this.opcode)?.groups!["bits"];
    const each = across ? (TENSOR_ROW[across] ?? 1) : 1;
    return Math.max(1, Number(TENSOR.exec(this.opcode)?.groups!["count"] ?? 1) * each);
  }
}

/** The bits of an element of the multiplied matrices. */
function bitsOf(kind: string, types: string[]): number {
  for (const name of types.slice(1)) {
    if (name === "TF32") return 32;
    if (["S8", "U8", "E4M3", "E5M2"].includes(name)) return 8;
    if (["S4", "U4", "E2M1"].includes(name)) return kind === "I" || kind === "O" ? 4 : 8;
  }
  return BITS[kind]!;
}
