// Which writes of a register each read of it may see; as irscope/ir/asm/register_flow.py has it.
import { registersOf, type Access, type ExecChange } from "./registers";

/** Depths of masks that are told apart; what is deeper hides nothing. */
const DEEPEST = 6;

/** The registers of one line, in the order of its values. */
export interface LineAccess {
  shown: string[];
  /** Those it does not name. */
  more: string[];
  /** One item for each of `shown` and `more`. */
  isWrite: boolean[];
}

/** The registers of a line whose holes have these names; `everything` is what an unknown instruction reads. */
export function lineAccess(access: Access, names: string[], everything: string[]): LineAccess {
  const line: LineAccess = { shown: [], more: [], isWrite: [] };
  const modified: string[] = [];
  access.holes.forEach(([width, mode], index) => {
    for (const register of registersOf(names[index]!, width)) {
      line.shown.push(register);
      line.isWrite.push(mode !== "r");
      if (mode === "m") modified.push(register);
    }
  });
  const add = (name: string, isWrite: boolean) => {
    line.more.push(name);
    line.isWrite.push(isWrite);
  };
  for (const name of modified) add(name, false);
  for (const [name, mode] of access.implicit) {
    if (mode !== "r") add(name, true);
    if (mode !== "w") add(name, false);
  }
  if (access.isUnknown) for (const name of everything) add(name, false);
  return line;
}

type MaybeAccess = Access | null;

/** The lines that may follow each line. */
export function successors(accesses: MaybeAccess[], targets: (number | null)[], labels: number[]): number[][] {
  const count = accesses.length;
  const returns = accesses.flatMap((one, line) => (one?.flow === "call" && line + 1 < count ? [line + 1] : []));
  return accesses.map((access, line) => {
    const after = line + 1 < count ? [line + 1] : [];
    const target = targets[line]!;
    const known = target === null ? [] : [target];
    switch (access?.flow) {
      case "jump":
        return known;
      case "branch":
        return [...after, ...known];
      case "call":
        return known.length ? known : after;
      case "return":
        return [...(access.isPartial ? after : []), ...returns];
      case "anywhere":
        return [...labels];
      case "end":
        return [];
      default:
        return after;
    }
  });
}

/** Writes that may be visible, each with its depth: write * 8 + depth. */
type Seen = ReadonlySet<number>;
type State = Map<string, Seen>;
type Depth = [least: number, most: number];
const NOTHING: Seen = new Set();

/** The values of a text's physical registers. */
export class Webs {
  /** Per line, for each of its registers its web: a write that stands for it, or the name of what nothing wrote. */
  readonly webs: (number | string)[][];
  /** Web -> the first line of the text that writes it. */
  readonly firstWriters = new Map<number, number>();
  private readonly writers: number[] = [];
  private readonly writes: [register: string, write: number][][] = [];
  private readonly parents: number[];

  constructor(
    private readonly accesses: MaybeAccess[],
    private readonly lines: (LineAccess | null)[],
    private readonly following: number[][],
  ) {
    lines.forEach((line, number) => {
      const own: [string, number][] = [];
      [...(line?.shown ?? []), ...(line?.more ?? [])].forEach((register, index) => {
        if (!line!.isWrite[index]) return;
        own.push([register, this.writers.length]);
        this.writers.push(number);
      });
      this.writes.push(own);
    });
    this.parents = this.writers.map((_, write) => write);
    this.webs = this.joined();
    this.writers.forEach((line, write) => {
      const web = this.root(write);
      if (!this.firstWriters.has(web)) this.firstWriters.set(web, line);
    });
  }

  private root(write: number): number {
    const { parents } = this;
    while (parents[write] !== write) write = parents[write] = parents[parents[write]!]!;
    return write;
  }

  private joined(): (number | string)[][] {
    const blocks = blocksOf(this.following);
    const entries = this.entries(blocks);
    const found: (number | string)[][] = this.lines.map(() => []);
    for (const [start, end] of blocks) {
      const [entered, atStart] = entries.get(start) ?? [new Map<string, Seen>(), [0, 0] as Depth];
      const state: State = new Map(entered);
      let depth = atStart;
      for (let line = start; line < end; line++) {
        const own = this.lines[line];
        if (!own) continue;
        let next = 0;
        found[line] = [...own.shown, ...own.more].map((register, index) => {
          if (own.isWrite[index]) return this.writes[line]![next++]![1];
          const seen = [...(state.get(register) ?? NOTHING)].map((one) => one >> 3);
          for (const other of seen.slice(1)) this.parents[this.root(other)] = this.root(seen[0]!);
          return seen[0] ?? register;
        });
        depth = this.step(line, state, depth);
      }
    }
    return found.map((webs) => webs.map((web) => (typeof web === "number" ? this.root(web) : web)));
  }

  /** What may be visible at the beginning of each block, and at which depths of masks it may begin. */
  private entries(blocks: [number, number][]): Map<number, [State, Depth]> {
    const ends = new Map(blocks);
    const entries = new Map<number, [State, Depth]>();
    const into = new Set(blocks.flatMap(([, end]) => this.following[end - 1]!));
    let waiting = blocks.map(([start]) => start).filter((start) => !into.has(start));
    if (blocks.length && !waiting.includes(blocks[0]![0])) waiting.unshift(blocks[0]![0]);
    for (const start of waiting) entries.set(start, [new Map(), [0, 0]]);
    // Rounds in the order of the text, which is nearly that of the control flow.
    while (waiting.length) {
      const again = new Set<number>();
      const round = new Set(waiting);
      for (const [start] of blocks) {
        if (!round.has(start)) continue;
        const [entered, atStart] = entries.get(start)!;
        const state: State = new Map(entered);
        let depth = atStart;
        const end = ends.get(start)!;
        for (let line = start; line < end; line++) depth = this.step(line, state, depth);
        for (const target of this.following[end - 1]!) {
          const merged = mergedEntry(entries.get(target), state, depth);
          if (!merged) continue;
          entries.set(target, merged);
          if (target > start) round.add(target);
          else again.add(target);
        }
      }
      waiting = [...again];
    }
    return entries;
  }

  /** Changes the state as a line does, and returns the depth behind it. */
  private step(line: number, state: State, depth: Depth): Depth {
    const access = this.accesses[line];
    if (!access) return depth;
    const [least, most] = depth;
    const keepsAll = access.isPartial || (access.isVector && most === DEEPEST);
    for (const [register, write] of this.writes[line]!) {
      const own = new Set([write * 8 + least]);
      if (keepsAll || (access.isVector && most > 0)) {
        for (const one of state.get(register) ?? NOTHING) if (keepsAll || (one & 7) < most) own.add(one);
      }
      state.set(register, own);
    }
    return access.execChange ? changedDepth(access.execChange, state, depth) : depth;
  }
}

function changedDepth(change: ExecChange, state: State, [least, most]: Depth): Depth {
  if (change === "shrinks") return [Math.min(least + 1, DEEPEST), Math.min(most + 1, DEEPEST)];
  // Lanes come back, of one depth or of several: what was written inside is now a write of some of the lanes.
  for (const [register, seen] of state) {
    if ([...seen].some((one) => one & 7)) state.set(register, new Set([...seen].map((one) => one - (one & 7))));
  }
  if (change === "fills") return [0, 0];
  return [0, change === "grows" && most < DEEPEST ? Math.max(most - 1, 0) : most];
}

/** Both together; null where nothing is new. */
function mergedEntry(known: [State, Depth] | undefined, state: State, depth: Depth): [State, Depth] | null {
  if (!known) return [new Map(state), depth];
  const [old, [least, most]] = known;
  // A depth that grows around a loop goes to the deepest at once.
  const both: Depth = [Math.min(least, depth[0]), depth[1] <= most ? most : DEEPEST];
  let changed = both[0] !== least || both[1] !== most;
  let merged = old;
  for (const [register, seen] of state) {
    const before = old.get(register) ?? NOTHING;
    if (seen === before || [...seen].every((one) => before.has(one))) continue;
    if (merged === old) merged = new Map(old);
    merged.set(register, new Set([...before, ...seen]));
    changed = true;
  }
  return changed ? [merged, both] : null;
}

/** Runs of lines, from first to behind the last, that are entered at their beginning and left at their end. */
function blocksOf(following: number[][]): [number, number][] {
  const count = following.length;
  const starts = new Set(count ? [0] : []);
  following.forEach((after, line) => {
    if (after.length === 1 && after[0] === line + 1) return;
    starts.add(line + 1);
    for (const target of after) starts.add(target);
  });
  const ordered = [...starts].filter((start) => start < count).sort((one, other) => one - other);
  return ordered.map((start, index) => [start, ordered[index + 1] ?? count]);
}
