// A kernel over the passes that changed it, as irscope/render/report/pictures.py writes it.

/** (operation, line of Python, made, removed, `~` if it is not known which, or `net` if they are not followed). */
export type Change = [string, string, number, number, string?];
/** (number of the tile or -1, its title, what is known, whether it is unclear, whether the pass changed it). */
export type Held = [number, string, string, boolean, boolean];

export interface Frame {
  /** The places of its first and its last pass; empty before the first pass. */
  passes: number[];
  /** In the order of `COUNTERS`. */
  counts: number[];
  /** (operations made, removed, whether there are those of LLVM). */
  came: [number, number, number];
  rows: Change[];
  /** How many rows there are beside them. */
  more: number;
  held: Held[];
}

export interface TilePicture {
  width: number;
  height: number;
  title: string;
  rows: number;
  columns: number;
  whole: [number, number];
  /** Cells of one size in rows, a digit each; empty without a layout. */
  colors: string[];
  /** (row, column, elements to the right) of what the first thread holds. */
  held: [number, number, number][];
  caption: string;
}

export interface Movie {
  /** (title, line of Python). */
  values: [string, string][];
  frames: Frame[];
  tiles: TilePicture[];
}

export const COUNTERS = ["operations", "layout conversions", "loads and stores", "dots", "barriers and waits"];
