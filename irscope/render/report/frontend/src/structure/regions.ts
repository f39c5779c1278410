// Pairs loops and other large regions before their lines are; as irscope/analysis/diff/regions.py does.
import type { Aligner, Gap } from "./align";
import type { Pair } from "./anchors";
import type { Body } from "./body";

// A region of a reduction has two lines, which every other reduction has too: only what is larger tells itself apart.
const SMALLEST = 6;
const LARGEST_TABLE = 900;
const LEAST_LIKENESS = 0.25;
const DEEPEST = 12;

/** Pairs the large regions of each gap that are alike, and splits the gap along them. */
export function pairRegions(aligner: Aligner, gaps: Gap[]): Gap[] {
  const { leftEnds, rightEnds } = aligner;
  const done: Gap[] = [];
  const waiting = gaps.map((gap): [Gap, number] => [gap, 0]).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [gap, depth] = next;
    const pairs = depth < DEEPEST ? alike(aligner, gap) : [];
    if (!pairs.length) {
      done.push(gap);
      continue;
    }
    let [lefts, rights] = gap;
    for (const [one, other] of pairs) {
      const [end, otherEnd] = [leftEnds.get(one)!, rightEnds.get(other)!];
      aligner.pair(one, other);
      // Before, inside; what is behind stays for the next pair.
      waiting.push([between([lefts, rights], [-1, one], [-1, other]), DEEPEST]);
      const inside = between([lefts, rights], [one, end], [other, otherEnd]);
      waiting.push([withoutTerminators(aligner, inside, end - 1, otherEnd - 1), depth + 1]);
      lefts = lefts.filter((line) => line > end);
      rights = rights.filter((line) => line > otherEnd);
    }
    waiting.push([[lefts, rights], DEEPEST]);
  }
  return done.filter(([lefts, rights]) => lefts.length && rights.length).sort((a, b) => a[0][0]! - b[0][0]!);
}

/** Line that opens regions -> line that closes the last of them (the end of the text, where none does). */
export function regionEnds(body: Body): Map<number, number> {
  const ends = new Map<number, number>();
  const roots = new Map<number, number>();
  body.shapes.forEach((shape, line) => {
    if (!shape.opens && !shape.closes) return;
    const opener = body.openers[line]!;
    const root = shape.closes ? (roots.get(opener) ?? opener) : -1;
    if (root >= 0) ends.set(root, line);
    if (shape.opens) {
      // "} else {" goes on with the operation that it closes a region of.
      roots.set(line, root >= 0 ? root : line);
      ends.set(roots.get(line)!, body.lines.length);
    }
  });
  return ends;
}

function between([lefts, rights]: Gap, left: Pair, right: Pair): Gap {
  return [
    lefts.filter((line) => left[0] < line && line < left[1]),
    rights.filter((line) => right[0] < line && line < right[1]),
  ];
}

function withoutTerminators(aligner: Aligner, inside: Gap, one: number, other: number): Gap {
  // What ends one region ends the other.
  const [lefts, rights] = inside;
  if (!lefts.length || !rights.length || lefts.at(-1) !== one || rights.at(-1) !== other) return inside;
  if (aligner.left.shapes[one]!.name !== aligner.right.shapes[other]!.name) return inside;
  aligner.pair(one, other);
  return [lefts.slice(0, -1), rights.slice(0, -1)];
}

/** The outermost large regions of a gap, paired in order by how much of what they hold is the same. */
function alike(aligner: Aligner, gap: Gap): Pair[] {
  const { left, right, leftEnds, rightEnds } = aligner;
  const ours = outermost(left, gap[0], leftEnds);
  const theirs = outermost(right, gap[1], rightEnds);
  if (!ours.length || !theirs.length || ours.length * theirs.length > LARGEST_TABLE) return [];
  const contents = ours.map((line) => contentOf(left, line, leftEnds.get(line)!));
  const otherContents = theirs.map((line) => contentOf(right, line, rightEnds.get(line)!));
  const table = Array.from({ length: ours.length + 1 }, () => new Array<number>(theirs.length + 1).fill(0));
  const scores = new Map<string, number>();
  for (let row = ours.length - 1; row >= 0; row--) {
    for (let at = theirs.length - 1; at >= 0; at--) {
      let best = Math.max(table[row + 1]![at]!, table[row]![at + 1]!);
      if (left.shapes[ours[row]!]!.name === right.shapes[theirs[at]!]!.name) {
        const score = likeness(contents[row]!, otherContents[at]!);
        if (score >= LEAST_LIKENESS) {
          scores.set(`${row} ${at}`, score);
          best = Math.max(best, score + table[row + 1]![at + 1]!);
        }
      }
      table[row]![at] = best;
    }
  }
  const pairs: Pair[] = [];
  for (let row = 0, at = 0; row < ours.length && at < theirs.length;) {
    const score = scores.get(`${row} ${at}`);
    const best = table[row]![at]!;
    if (score !== undefined && best === score + table[row + 1]![at + 1]!) pairs.push([ours[row++]!, theirs[at++]!]);
    else if (best === table[row + 1]![at]) row++;
    else at++;
  }
  return pairs;
}

function outermost(body: Body, lines: number[], ends: Map<number, number>): number[] {
  const found: number[] = [];
  let last = -1;
  for (const line of lines) {
    const shape = body.shapes[line]!;
    if (line <= last || !shape.opens || shape.closes || ends.get(line)! - line <= SMALLEST) continue;
    found.push(line);
    last = ends.get(line)!;
  }
  return found;
}

interface Content {
  keys: Map<number, number>;
  names: Map<string, number>;
  total: number;
}

function contentOf(body: Body, start: number, end: number): Content {
  const content: Content = { keys: new Map(), names: new Map(), total: 0 };
  for (let line = start + 1; line < Math.min(end, body.lines.length); line++) {
    const [key, { name }] = [body.keys[line]!, body.shapes[line]!];
    content.keys.set(key, (content.keys.get(key) ?? 0) + 1);
    content.names.set(name, (content.names.get(name) ?? 0) + 1);
    content.total++;
  }
  return content;
}

function likeness(one: Content, other: Content): number {
  // Whole lines count twice as much as names of operations; of the smaller one, since loops grow when pipelined.
  const smaller = Math.max(1, Math.min(one.total, other.total));
  return (2 * common(one.keys, other.keys) + common(one.names, other.names)) / (3 * smaller);
}

function common<K>(one: Map<K, number>, other: Map<K, number>): number {
  let total = 0;
  for (const [key, count] of one) total += Math.min(count, other.get(key) ?? 0);
  return total;
}
