// Machine code with its live registers, as irscope/render/report/texts.py packs it: a test compares the fields.

export type Kind = "spill" | "dot" | "barrier";

export interface MachineCode {
  stage: string;
  /** What a thread was given. */
  registers: number | null;
  said: string;
  /** The line with the most live registers; 0 if they are not known. */
  peak: number;
  /** Of the instructions, each as the step from the one before. */
  lines: number[];
  /** Of each instruction; -1 where it is not known. */
  live: number[];
  /** (number of the instruction, kind, what it is). */
  marks: [number, Kind, string][];
  /** File -> (line, the most live registers of its instructions, their marks). */
  python: Record<string, [number, string, string][]>;
}

export interface Instruction {
  /** -1 where it is not known. */
  live: number;
  marks: { kind: Kind; text: string }[];
}

const SIGNS: Record<Kind, string> = { spill: "✗", dot: "◆", barrier: "‖" };
export const SIGNS_MEAN = `${SIGNS.dot} matrix instruction, ${SIGNS.barrier} barrier or wait, ${SIGNS.spill} spilled register`;

/** What stands beside each line. */
export class Annotations {
  /** By line of the stage. */
  readonly instructions = new Map<number, Instruction>();
  readonly most: number;

  constructor(readonly code: MachineCode) {
    let line = 0;
    const all = code.lines.map((step, at): Instruction => {
      const one = { live: code.live[at]!, marks: [] };
      this.instructions.set((line += step), one);
      return one;
    });
    for (const [at, kind, text] of code.marks) all[at]?.marks.push({ kind, text });
    this.most = code.live.reduce((most, one) => Math.max(most, one), 0);
  }

  /** What a gutter says of a line of the stage: the live registers, and signs of its marks. */
  sign(line: number): string {
    const one = this.instructions.get(line);
    if (!one) return "";
    const signs = one.marks.map((mark) => SIGNS[mark.kind]).join("");
    return `${one.live < 0 ? "" : one.live} ${signs.padEnd(1)}`;
  }

  /** The same in words. */
  told(line: number): string {
    const one = this.instructions.get(line);
    if (!one) return "";
    const given = this.code.registers === null ? "" : ` of ${this.code.registers}`;
    const live = one.live < 0 ? [] : [`${one.live}${given} registers are live`];
    return [...live, ...one.marks.map((mark) => mark.text)].join("; ");
  }

  /** By line of a Python file: the most live registers of what it became, and its marks in words. */
  python(file: string): Map<number, { live: string; marks: string }> {
    return new Map((this.code.python[file] ?? []).map(([line, live, marks]) => [line, { live, marks }]));
  }
}
