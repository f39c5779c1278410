// What an instruction of SASS or AMD GPU assembly does with registers; as irscope/ir/asm/registers.py has it.

/** Read, written, or both: modified in place, or written in part. */
export type Mode = "r" | "w" | "m";
/** Where control goes: on, to a label or on, to a label, nowhere, into a function, back from one, to any label. */
export type Flow = "next" | "branch" | "jump" | "end" | "call" | "return" | "anywhere";
/** What becomes of the lanes that are on. */
export type ExecChange = "" | "shrinks" | "grows" | "fills" | "any";

/** What all lines with one template do with registers. */
export interface Access {
  /** (registers, mode) of each hole; a label has [0, "r"]. */
  holes: [width: number, mode: Mode][];
  /** Registers that are used without a hole. */
  implicit: [name: string, mode: Mode][];
  /** Whether what stood in a written register may remain. */
  isPartial: boolean;
  /** Whether it writes only the lanes that are on. */
  isVector: boolean;
  execChange: ExecChange;
  flow: Flow;
  /** No rule knows it: it is taken to read every register of the text, and its registers count by name. */
  isUnknown: boolean;
}

export function access(parts: Partial<Access>): Access {
  return {
    holes: [],
    implicit: [],
    isPartial: false,
    isVector: false,
    execChange: "",
    flow: "next",
    isUnknown: false,
    ...parts,
  };
}

/** How many values each hole stands for; a label is one. */
export function spansOf({ holes }: Access): number[] {
  return holes.map(([width]) => width || 1);
}

/** Which of the line's values it writes: those of its holes, old values of what it modifies, implicit ones. */
export function definesOf({ holes, implicit }: Access): number[] {
  const found: number[] = [];
  let place = 0;
  for (const [width, mode] of holes) {
    if (mode !== "r") for (let index = 0; index < width; index++) found.push(place + index);
    place += width || 1;
  }
  for (const [width, mode] of holes) if (mode === "m") place += width;
  for (const [, mode] of implicit) {
    if (mode !== "r") found.push(place);
    place += mode === "m" ? 2 : 1;
  }
  return found;
}

// R12   UR4   v5   s[20:23]   a[0:15]   P0
const NAME = /^([A-Za-z_]+?)(?:(\d{1,4})|\[(\d{1,4}):(\d{1,4})\])$/;

/** The single registers that a name covers: `R4` with width 2 is R4 and R5, `s[4:7]` is s4 to s7. */
export function registersOf(name: string, width: number): string[] {
  const match = NAME.exec(name);
  if (!match) return new Array<string>(width).fill(name);
  const first = Number(match[2] ?? match[3]);
  return Array.from({ length: width }, (_, index) => `${match[1]}${first + index}`);
}

/** How a row of registers is written, in the manner of `written`; `written` itself where they are no row. */
export function joinedName(registers: string[], written: string): string {
  const match = registers.length ? NAME.exec(registers[0]!) : null;
  if (!match || match[2] === undefined) return registers.length === 1 ? registers[0]! : written;
  const row = registersOf(registers[0]!, registers.length);
  if (registers.some((name, index) => name !== row[index])) return written;
  const first = Number(match[2]);
  return written.includes("[") ? `${match[1]}[${first}:${first + registers.length - 1}]` : registers[0]!;
}

/** Splits an operand list at the commas that stand in no bracket. */
export function splitOperands(text: string): string[] {
  const bare = text.trim().replace(/\s+/g, " ");
  if (!bare) return [];
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < bare.length; at++) {
    const sign = bare[at]!;
    if ("([{".includes(sign)) depth++;
    else if (")]}".includes(sign)) depth--;
    else if (sign === "," && depth <= 0) {
      parts.push(bare.slice(start, at).trim());
      start = at + 1;
    }
  }
  return [...parts, bare.slice(start).trim()];
}
