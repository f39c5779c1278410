// Keys of lines, and the lines whose keys are rare enough to hold an alignment together; as irscope/analysis/diff/anchors.py.
import type { Body } from "./body";
import { rowHash } from "./hash";

export type Pair = [number, number];

/** A key for each line. */
export interface Keys {
  get(line: number): number | undefined;
}

/** A column of a body as keys. */
export const column = (items: number[]): Keys => ({ get: (line) => items[line] });

/** Lines that the key of a window takes in. */
const WINDOW = 4;

export type KeyOf = (body: Body, line: number) => number;

/** Keys of a line and of the lines that define its operands. */
export function keysWithOperands(body: Body, runs: number[][], key: KeyOf): Keys {
  const keys = new Map<number, number>();
  for (const run of runs) {
    for (const line of run) {
      const row = [key(body, line)];
      for (const value of body.uses[line]!) {
        const source = body.definers[value]!;
        row.push(source >= 0 ? key(body, source) : -1);
      }
      keys.set(line, rowHash(row));
    }
  }
  return keys;
}

/** Keys of a line and the next ones of its run. */
export function keysOfWindows(body: Body, runs: number[][], key: KeyOf): Keys {
  const keys = new Map<number, number>();
  for (const run of runs) {
    const own = run.map((line) => key(body, line));
    run.forEach((line, index) => keys.set(line, rowHash(own.slice(index, index + WINDOW))));
  }
  return keys;
}

/**
 * Places whose keys are unique on both sides: the longest run of them in one order, and those out of order. With
 * `repeats`, a key that occurs equally often on both sides counts too. `weight` says how much it would take to call a
 * left line moved.
 */
export function rarePairs(
  lefts: number[],
  rights: number[],
  leftKeys: Keys,
  rightKeys: Keys,
  repeats: boolean,
  weight?: (line: number) => number,
): { chain: Pair[]; moves: Pair[] } {
  const places = new Map<number, number>();
  const again = new Map<number, number[]>();
  rights.forEach((line, place) => {
    const key = rightKeys.get(line)!;
    if (places.has(key)) append(again, key, place);
    else places.set(key, place);
  });
  const seen = new Map<number, number>();
  const repeated = new Map<number, number[]>();
  lefts.forEach((line, place) => {
    const key = leftKeys.get(line)!;
    if (!places.has(key)) return;
    if (seen.has(key)) append(repeated, key, place);
    else seen.set(key, place);
  });
  const pairs: Pair[] = [];
  for (const [key, place] of seen) {
    const [ours, theirs] = [repeated.get(key), again.get(key)];
    if (!ours && !theirs) pairs.push([place, places.get(key)!]);
    else if (repeats && ours && theirs && ours.length === theirs.length) {
      pairs.push([place, places.get(key)!]);
      ours.forEach((one, index) => pairs.push([one, theirs[index]!]));
    }
  }
  if (!pairs.length) return { chain: [], moves: [] };
  if (repeated.size) pairs.sort((one, other) => one[0] - other[0]);
  const others = pairs.map((pair) => pair[1]);
  let chain = longestAscending(others);
  if (chain.length === pairs.length) return { chain: pairs, moves: [] };
  if (weight) {
    const weights = pairs.map(([place]) => weight(lefts[place]!));
    if (weights.some((one) => one > 1)) chain = heaviestAscending(others, weights);
  }
  const kept = new Set(chain);
  return { chain: chain.map((index) => pairs[index]!), moves: pairs.filter((_, index) => !kept.has(index)) };
}

/** Adds to the list that a map holds for a key. */
export function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const found = map.get(key);
  if (found) found.push(value);
  else map.set(key, [value]);
}

/** The indices of a longest ascending subsequence. */
export function longestAscending(numbers: number[]): number[] {
  const tails: number[] = [];
  const tailIndices: number[] = [];
  const previous = new Array<number>(numbers.length).fill(-1);
  numbers.forEach((number, index) => {
    let [place, end] = [0, tails.length];
    while (place < end) {
      const middle = (place + end) >> 1;
      if (tails[middle]! < number) place = middle + 1;
      else end = middle;
    }
    if (place) previous[index] = tailIndices[place - 1]!;
    tails[place] = number;
    tailIndices[place] = index;
  });
  return followed(previous, tailIndices.at(-1) ?? -1);
}

/** The indices of an ascending subsequence of the greatest weight. */
function heaviestAscending(numbers: number[], weights: number[]): number[] {
  const ranks = new Map([...new Set(numbers)].sort((a, b) => a - b).map((number, index) => [number, index + 1]));
  // A Fenwick tree of the heaviest subsequence that ends at or below a rank: (weight, index).
  const tree = new Array<Pair>(ranks.size + 1).fill([0, -1]);
  const previous = new Array<number>(numbers.length).fill(-1);
  const heavier = (one: Pair, other: Pair) => ((other[0] - one[0] || other[1] - one[1]) > 0 ? other : one);
  let best: Pair = [0, -1];
  numbers.forEach((number, index) => {
    let rank = ranks.get(number)! - 1;
    let heaviest: Pair = [0, -1];
    for (; rank > 0; rank -= rank & -rank) heaviest = heavier(heaviest, tree[rank]!);
    previous[index] = heaviest[1];
    const reached: Pair = [heaviest[0] + weights[index]!, index];
    best = heavier(best, reached);
    for (rank = ranks.get(number)!; rank < tree.length; rank += rank & -rank)
      tree[rank] = heavier(tree[rank]!, reached);
  });
  return followed(previous, best[1]);
}

function followed(previous: number[], last: number): number[] {
  const chain: number[] = [];
  for (let index = last; index >= 0; index = previous[index]!) chain.push(index);
  return chain.reverse();
}
