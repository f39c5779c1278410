// Which pass made and which removed an operation, as irscope/render/report/facts.py writes it.
import { runsOf } from "./runs";

export interface PackedLives {
  /** (first pass, last pass) of each step. */
  steps: [number, number][];
  /** Of each step (operation, made, removed). */
  changes: [string, number, number][][];
  /** Text number -> for its lines the step that made the operation and the one that removes it, as runs. */
  texts: Record<string, [number[], number[]]>;
}

/** A step, or why there is none to name. */
export type Fate = { passes: [number, number] } | "none" | "first" | "unclear";

export interface Change {
  names: string[];
  made: number;
  removed: number;
}

export class Lives {
  private readonly lines = new Map<number, [number[], number[]]>();

  constructor(private readonly packed: PackedLives) {}

  /** What made and what removes the operation on a line (1-based) of a text; undefined where there is none. */
  of(text: number, line: number): { made: Fate; removed: Fate } | undefined {
    const packed = this.packed.texts[text];
    if (!packed) return undefined;
    let found = this.lines.get(text);
    if (!found) this.lines.set(text, (found = [runsOf<number>(packed[0]), runsOf<number>(packed[1])]));
    const made = found[0][line - 1] ?? -1;
    return made === -1 ? undefined : { made: this.fate(made), removed: this.fate(found[1][line - 1] ?? -1) };
  }

  /** How many operations a pass made and removed whose names, with their dialect or without, begin with a word. */
  changes(pass: number, word: string): Change | undefined {
    const found: Change = { names: [], made: 0, removed: 0 };
    this.packed.steps.forEach(([first, last], step) => {
      if (pass < first || pass > last) return;
      for (const [name, made, removed] of this.packed.changes[step] ?? []) {
        if (!name.startsWith(word) && !name.slice(name.indexOf(".") + 1).startsWith(word)) continue;
        found.names.push(name);
        found.made += made;
        found.removed += removed;
      }
    });
    return found.names.length ? found : undefined;
  }

  private fate(step: number): Fate {
    if (step >= 0) return { passes: this.packed.steps[step]! };
    return step === -2 ? "first" : step === -3 ? "unclear" : "none";
  }
}
