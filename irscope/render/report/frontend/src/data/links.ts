// Which lines of all stages come from the same place: chains of calls compared, frame by frame; and, where it is known
// which operation of the TTGIR an instruction is from, which of them are the same operation's.
import type { Locations } from "./model";
import { runsOf } from "./runs";

/** How near a chain is to the one looked at: 2 the same place, 1 a caller, a callee or another column, 0 none of it. */
export type Nearness = 0 | 1 | 2;

/** What a line is near to: every chain's nearness, and its operation's first line in the TTGIR, 0 if not known. */
export interface Near {
  chains: Nearness[];
  operation: number;
}

export interface Frame {
  file: string;
  line: number;
  column: number;
  function: string;
  name: string;
}

export class Links {
  private readonly byLine = new Map<string, number[]>();
  private readonly lines: string[];
  private readonly exact: string[];
  private readonly hasColumns: boolean[];
  private readonly operations = new Map<string, number[]>();
  private readonly owners: Map<number, number>;

  constructor(private readonly locations: Locations) {
    this.lines = locations.chains.map((chain) => chain.map((frame) => this.place(frame, false)).join(""));
    this.exact = locations.chains.map((chain) => chain.map((frame) => this.place(frame, true)).join(""));
    this.hasColumns = locations.chains.map((chain) => chain.some((frame) => locations.frames[frame]![2] > 0));
    for (const [stage, runs] of Object.entries(locations.operations)) this.operations.set(stage, runsOf<number>(runs));
    this.owners = new Map(locations.owners);
  }

  /** The chain of a line (1-based) of a stage, -1 for none. */
  chainAt(stage: string, line: number): number {
    return this.linesOf(stage)[line - 1] ?? -1;
  }

  linesOf(stage: string): number[] {
    let found = this.byLine.get(stage);
    if (!found) this.byLine.set(stage, (found = runsOf<number>(this.locations.stages[stage] ?? [])));
    return found;
  }

  /** Whether a line has a place or an operation that others may share. */
  isLinked(stage: string, line: number): boolean {
    return this.chainAt(stage, line) >= 0 || this.operationAt(stage, line) > 0;
  }

  /** How near a line is. Of instructions whose operation is known, only the operation's own are at the same place. */
  nearness(near: Near, stage: string, line: number): Nearness {
    const found = near.chains[this.chainAt(stage, line)] ?? 0;
    if (!near.operation || !this.tellsOperations(stage)) return found;
    return this.operationAt(stage, line) === near.operation ? 2 : found && 1;
  }

  /** What is near to a line of a stage. */
  nearTo(stage: string, line: number): Near {
    const chain = this.chainAt(stage, line);
    return { chains: chain < 0 ? [] : this.nearChain(chain), operation: this.operationAt(stage, line) };
  }

  private tellsOperations(stage: string): boolean {
    return stage === "ttgir" ? this.operations.size > 0 : this.operations.has(stage);
  }

  private operationAt(stage: string, line: number): number {
    if (!this.tellsOperations(stage)) return 0;
    return stage === "ttgir" ? (this.owners.get(line) ?? line) : (this.operations.get(stage)![line - 1] ?? 0);
  }

  /** The frames of a chain, innermost first. */
  frames(chain: number): Frame[] {
    return (this.locations.chains[chain] ?? []).map((number) => {
      const [file, line, column, name, value] = this.locations.frames[number]!;
      return { file: this.locations.files[file] ?? "", line, column, function: name, name: value };
    });
  }

  /** How near every chain is to one of them. */
  private nearChain(chain: number): Nearness[] {
    const line = this.lines[chain]!;
    const columns = this.hasColumns[chain]!;
    return this.lines.map((other, number) => {
      if (other === line)
        return !columns || !this.hasColumns[number] || this.exact[number] === this.exact[chain] ? 2 : 1;
      return other.endsWith(line) || line.endsWith(other) ? 1 : 0;
    });
  }

  /** What is near to a line of a Python file. */
  nearLine(file: string, line: number): Near {
    const found = this.locations.chains.map((chain): Nearness => {
      const at = chain.findIndex((number) => {
        const frame = this.locations.frames[number]!;
        return frame[1] === line && this.locations.files[frame[0]] === file;
      });
      return at < 0 ? 0 : at === 0 ? 2 : 1;
    });
    // A line that only calls has nothing of its own: what it called is what it became.
    return { chains: found.includes(2) ? found : found.map((near) => (near ? 2 : 0)), operation: 0 };
  }

  private place(number: number, withColumn: boolean): string {
    const frame = this.locations.frames[number]!;
    return `|${frame[0]}:${frame[1]}${withColumn ? `:${frame[2]}` : ""}`;
  }
}
