// The memory of a capture, as irscope/render/report/facts.py packs it: a test compares the fields with its dataclasses.

/** The least and the most that it can be; equal where it is known. */
export type Span = [number, number];

/** Stands for a number without a bound. */
export const MOST = 2 ** 62;

export type Certainty = "exact" | "range" | "sampled";

/** What one operation asks of memory, in all warps of one or more programs. */
export interface Traffic {
  executions: Span;
  instructions: Span;
  active_instructions: Span;
  bytes: Span;
  masked_lanes: Span;
  units: Span;
  ideal_units: Span;
  least_units: Span;
  lines: Span;
  distinct_bytes: Span;
}

/** One operation that accesses global memory. */
export interface GlobalAccess {
  operation: string;
  line: number;
  action: "load" | "store" | "atomic" | "copy";
  argument: string;
  /** 0 for a block of a tensor descriptor, which has no lanes. */
  bits_per_thread: number;
  possible_bits: number;
  strides: (number | null)[];
  unit_bytes: number;
  line_bytes: number;
  each: Traffic;
  first: Traffic;
  inner: Traffic;
  last: Traffic;
  /** Of these three. */
  programs: Certainty;
  launch: Traffic;
  /** Of the launch. */
  certainty: Certainty;
  basis: string;
  assumed: string[];
  element_bytes: number;
}

/** The cost of one operation because of its layouts or its addresses. */
export interface Cost {
  kind: "global" | "shared" | "conversion";
  operation: string;
  line: number;
  place: string;
  layouts: string[];
  values: string[];
  excess: number;
  loops: number;
  summary: string;
  hint: string;
  figures: Figures;
  pair: [string, string] | null;
  /** Every frame of it, innermost first. */
  chain: string[];
  /** Whether the instructions are its own; otherwise they are those of all operations on its line of Python. */
  by_operation: boolean;
  access: GlobalAccess | null;
}

/** Which of them there are depends on the operation: docs/json.md. */
export interface Figures {
  assembly_bits?: Record<string, number>;
  bits_per_thread?: number;
  wavefronts?: number;
  minimum_wavefronts?: number;
  banks?: number;
  ways?: number;
  bytes?: number;
}

/** A piece of shared or tensor memory that an operation owns for a while. */
export interface Buffer {
  kind: "buffer" | "barrier" | "scratch" | "call" | "warps";
  owner: string;
  value: string;
  what: string;
  line: number;
  place: string;
  chain: string[];
  offset: number;
  size: number;
  start: number;
  end: number;
  is_exact: boolean;
  padding: number;
  row: number;
  /** 0 if it is not known. */
  ttgir_line: number;
}

/** A buffer, and what is said of it. */
export interface Holder {
  title: string;
  at_peak: boolean;
  buffer: Buffer;
}

/** One memory over time. */
export interface MemoryOverTime {
  space: string;
  unit: string;
  total: number;
  limit: number | null;
  held_at_peak: number;
  headline: string;
  peak: string;
  holders: Holder[];
}

export interface Memory {
  costs: Cost[];
  assembly: string;
  reasons: string[];
  memories: MemoryOverTime[];
  /** SVG. */
  picture: string;
}
