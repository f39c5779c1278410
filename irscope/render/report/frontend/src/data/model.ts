// The data of a report, as irscope/render/report/page.py writes it.
import type { Cost } from "./memory";
import type { Results } from "./results";

export type Kind = "mlir" | "llvm" | "ptx" | "sass" | "amdgcn" | "binary" | "python" | "text";
/** (offset, length) of a blob in its chunk, and behind them the chunk and the place of what it points back to. */
export type Place = [number, number, ...number[]];
/** A text's (chunk, offset, length, length of the steps, base, whether its numbers are steps); or the numbers of its
 * lines without locations and of its margins. */
export type TextRow = [number, number, number, number, number, number] | [number, number];
export type Pair = [string, unknown];

export interface Index {
  version: number;
  irscope: string;
  captures: CaptureRow[];
  texts: TextRow[];
  /** What is said of a difference that the page made of lines alone. */
  lineByLine: string;
  results?: Results;
}

export interface Capture {
  id: string;
  kernel: string;
  file: string;
  line: number;
  firstLine: number;
  target: string;
  warpSize: number;
  status: "ok" | "failed";
  failure: Failure | null;
  plan: string;
  /** What tells it from the other captures of its kernel: `BLOCK=64 num_warps=8`. */
  differsIn: string;
  language: string;
  signature: Pair[];
  constants: Pair[];
  attributes: Pair[];
  options: Pair[];
  grid: number[] | null;
  autotuning: Record<string, unknown> | null;
  resources: Record<string, number>;
  occupancy: Occupancy | null;
  families: Record<string, number>;
  environment: Record<string, unknown>;
  metadata: Pair[];
  notes: string[];
  compileUs: number | null;
  snapshotLevel: string;
  stages: Stage[];
  passes: Pass[];
  findings: Finding[];
  sources: [string, number][];
  kernelSource?: number;
  /** How its stages differ from those of another capture. */
  compared?: { with: number; stages: Record<string, Place> };
  counted: Place;
  locations: Place;
  layouts: Place;
  memory: Place;
  heat?: Place;
  /** The number of a text: JSON of a `Movie`. */
  movie?: number;
  annotations?: Place;
  lives: Place;
  graphs: Place;
  /** The number of its text: the SVG of `irscope draw poster`, without a style of its own. */
  poster?: number;
  /** The number of the text of `irscope time`'s picture, without a style of its own, and its tables. */
  time?: { picture: number; tables: Place };
  /** The number of its text: the flame graph of `irscope passes --time`, without a style of its own. */
  flame?: number;
}

/** A predicted time as sentences, and as tables (columns, rows), whose lines begin with `file:line`. */
export interface Predicted {
  about: string[];
  units: [string[], string[][]];
  states: [string[], string[][]];
  lines: [string[], string[][]];
  notes: string[];
}

/** A graph of `irscope draw`. */
export interface Graph {
  /** A stage, `passes`, `loops` or `warps`. */
  of: string;
  /** The number of its picture's text: SVG, or where nothing placed it yet DOT. */
  text: number;
  dot: boolean;
  /** Of each node (first line, last line) again and again, of the stage or of the TTGIR. */
  lines: Record<string, number[]>;
}

/** A capture as the index has it. */
export type CaptureRow = Omit<Capture, "passes"> & { passes: Place };

export interface Failure {
  kind: string;
  verdict: string;
  message: string;
  stage: string;
  pass_label: string;
  diagnostics: string;
}

export interface Occupancy {
  text: string;
  limits: [string, number][];
  fraction: number;
}

export interface Stage {
  stage: string;
  kind: Kind;
  title: string;
  us: number | null;
  bytes: number;
  lines: number | null;
  /** Of a binary. */
  digest?: string;
  text?: number;
  /** Where its values are defined. */
  values?: Place;
}

/** What is counted of a capture, and the words of its texts. */
export interface Counted {
  /** Stage -> operation -> how many. */
  operations: Record<string, Record<string, number>>;
  /** Stage -> operation -> what it does. */
  meanings: Record<string, Record<string, string>>;
  /** What the columns before an instruction of SASS mean. */
  columns: Record<string, string>;
  /** Where there are other captures: what went in, by name, and the compiler's files. */
  inputs?: Record<string, unknown>;
  parts?: Record<string, unknown>;
  /** Stage -> (file, line of Python, operations). */
  lines?: Record<string, [string, number, number][]>;
}

export interface Pass {
  stage: string;
  name: string;
  n: number;
  index?: number;
  argument?: string;
  options?: string;
  outcome: "ran" | "skipped" | "failed";
  changed: boolean | null;
  us?: number;
  group: "mlir" | "llvm";
  scope?: string;
  leftOut?: boolean;
  /** What the compiler printed of its reasons, as the number of a text. */
  log?: number;
  /** (FILE:LINE, a decision as a sentence), of that log. */
  decisions?: [string, string][];
  /** Changes of lines, operations, layouts and convert_layouts. */
  counts?: (number | null)[];
  byOperation?: [string, number][];
  /** Numbers of texts. */
  before?: number;
  after?: number;
  /** How these differ. */
  diff?: Place;
}

export interface Finding {
  level: "bad" | "warn" | "note";
  /** Of a finding of `irscope why`: `IRS101 narrow-load`. */
  code?: string;
  text: string;
  /** `/home/jo/kernel.py:23` */
  place?: string;
  stage?: string;
  line?: number;
  pass?: string;
}

export interface Change {
  name: string;
  left: unknown;
  right: unknown;
}

export interface LineChange {
  file: string;
  line: number;
  stages: [string, number][];
}

export interface Tables {
  differences: Change[];
  stages: {
    stage: string;
    state: "identical" | "same" | "differs" | "left only" | "right only";
    operations: [number, number];
    changes: [string, number][];
  }[];
  resources: Change[];
  instructions: Change[];
  passes: { label: string; left_us: number | null; right_us: number | null; outcome: [string, string] }[];
}

export interface Locations {
  stages: Record<string, number[]>;
  files: string[];
  /** (file, line, column, function, name). */
  frames: [number, number, number, string, string][];
  chains: number[][];
  /** Of assembly: (first line of the operation in the TTGIR or 0, lines) again and again. */
  operations: Record<string, number[]>;
  /** (line, first line of its operation) for lines of the TTGIR that continue an operation. */
  owners: [number, number][];
}

export interface Heat {
  /** Samples of warps that waited. */
  stalled: number;
  /** Stage, or file of Python -> (line, samples, what is known of it). */
  lines: Record<string, [number, number, string][]>;
}

export interface Layouts {
  rows: LayoutRow[];
  conversions: Cost[];
  /** Of two layouts that were asked for, by the numbers of both (0-based). */
  between?: Record<string, Between>;
}

/** What moves between two layouts, or how one accesses the other. */
export interface Between {
  facts: string[];
  /** The elements that the first lanes of warp 0 access together. */
  request: number[];
}

export interface LayoutRow {
  alias?: string;
  encoding?: string;
  shape?: number[];
  elements?: string[];
  reason?: string;
  note?: string;
  bases?: Record<string, number[][]> | [string, number[][]][];
  operations?: { name?: string; lines?: number[]; values?: string[]; python?: string; chains?: string[][] }[];
  [other: string]: unknown;
}

/** Whether a pass left another text than it found, and both are held. */
export const hasDiff = (pass: Pass): boolean =>
  pass.before !== undefined && pass.after !== undefined && pass.before !== pass.after;

/** The text that a pass left, or where it failed the one it found. */
export const textOf = (pass: Pass): number | undefined =>
  pass.outcome === "failed" ? (pass.before ?? pass.after) : (pass.after ?? pass.before);

export const labelOf = (pass: Pass): string => `${pass.stage}:${pass.name}#${pass.n}`;
