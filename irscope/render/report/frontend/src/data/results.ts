// Results of many compiles, as irscope/render/report/results.py has them.

export type Tone = "" | "better" | "worse" | "idle" | "bad";
/** What a click shows, as the fragment has it; empty for no link. */
export type View = Record<string, string | number>;

export interface Cell {
  text: string;
  note: string;
  tone: Tone;
  key: number | string | null;
  view: View;
}

export interface ResultTable {
  columns: string[];
  rows: Cell[][];
  tones: Tone[];
  has_baseline: boolean;
}

export interface Section {
  title: string;
  lines: string[];
  verdict: string;
  tone: Tone;
  table: ResultTable | null;
  view: View;
  /** (summary, text) of what stands behind a click. */
  details: [string, string][];
}

export interface Results {
  title: string;
  about: string[];
  sections: Section[];
}
