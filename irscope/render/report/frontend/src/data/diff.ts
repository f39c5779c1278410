// A structural diff: which lines of two texts are partners, and how they read under one set of names.
import type { Kind } from "./model";

export type Op = "equal" | "added" | "removed" | "changed" | "moved";

/** Lines of one or both sides that share a fate; 0-based starts in `left` and `right`. */
export interface Entry {
  op: Op;
  left: number;
  leftCount: number;
  right: number;
  rightCount: number;
  /** For a changed line: it only reads another of several equal computations. */
  rewired: boolean;
  /** For moved lines: where they stand on the other side. */
  partner: number;
}

export interface Diff {
  kind: Kind;
  summary: string;
  /** Why the texts were compared line by line; null where their structure was. */
  fallback: string | null;
  entries: Entry[];
  left: string[];
  right: string[];
  /** 1-based lines of the texts. */
  leftNumbers: ArrayLike<number>;
  rightNumbers: ArrayLike<number>;
  /** All lines of both texts, with their locations. */
  readonly leftText: string[];
  readonly rightText: string[];
}

/** Whether there is a difference to be shown. */
export function differs(diff: Diff | undefined): diff is Diff {
  return diff?.entries.some((entry) => entry.op !== "equal") ?? false;
}

const LOCATION = / loc\((?:#loc\d*|unknown)\)|,? !dbg !\d+/g;

/** A line without its simple locations. */
export function plain(line: string): string {
  return line.replace(LOCATION, "").replace(/ +$/, "");
}
