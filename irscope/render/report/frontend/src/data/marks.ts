// Which words of two versions of a line differ; the same rule as irscope/analysis/diff/texts.py.

export type Span = [number, number];

const WORD = /[%#^!@$]?[\w.$]+(?:-[\w.$]+)*|\s+|->|./gsu;
const LARGEST_TABLE = 4096;
const LONGEST = 2000;

/** The spans of the left and of the right line that the other one has not; indentation does not count. */
export function wordMarks(left: string, right: string): [Span[], Span[]] {
  if (left.length > LONGEST || right.length > LONGEST) return [[[0, left.length]], [[0, right.length]]];
  const ours = left.trimStart().match(WORD) ?? [];
  const theirs = right.trimStart().match(WORD) ?? [];
  const keptLeft = new Set<number>();
  const keptRight = new Set<number>();
  for (const [one, other] of common(ours, theirs)) {
    keptLeft.add(one);
    keptRight.add(other);
  }
  return [
    spans(ours, keptLeft, left.length - left.trimStart().length),
    spans(theirs, keptRight, right.length - right.trimStart().length),
  ];
}

/** What two sequences have in common, as pairs of places. */
export function common(ours: string[], theirs: string[]): Span[] {
  const found: Span[] = [];
  const waiting: [number, number, number, number][] = [[0, ours.length, 0, theirs.length]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    let [left, leftEnd, right, rightEnd] = next;
    while (left < leftEnd && right < rightEnd && ours[left] === theirs[right]) found.push([left++, right++]);
    while (left < leftEnd && right < rightEnd && ours[leftEnd - 1] === theirs[rightEnd - 1]) {
      found.push([--leftEnd, --rightEnd]);
    }
    if ((leftEnd - left) * (rightEnd - right) <= LARGEST_TABLE) {
      found.push(...longest(ours, theirs, left, leftEnd, right, rightEnd));
      continue;
    }
    const anchors = rare(ours, theirs, left, leftEnd, right, rightEnd);
    found.push(...anchors);
    if (!anchors.length) continue;
    for (const [one, other] of [...anchors, [leftEnd, rightEnd] as Span]) {
      waiting.push([left, one, right, other]);
      left = one + 1;
      right = other + 1;
    }
  }
  return found;
}

function longest(ours: string[], theirs: string[], left: number, leftEnd: number, right: number, rightEnd: number) {
  const rows = leftEnd - left;
  const width = rightEnd - right;
  const found: Span[] = [];
  if (!rows || !width) return found;
  const table = new Uint16Array((rows + 1) * (width + 1));
  const at = (row: number, column: number) => table[row * (width + 1) + column]!;
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = width - 1; column >= 0; column--) {
      table[row * (width + 1) + column] =
        ours[left + row] === theirs[right + column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  for (let row = 0, column = 0; row < rows && column < width;) {
    if (ours[left + row] === theirs[right + column]) found.push([left + row++, right + column++]);
    else if (at(row + 1, column) >= at(row, column + 1)) row++;
    else column++;
  }
  return found;
}

function rare(ours: string[], theirs: string[], left: number, leftEnd: number, right: number, rightEnd: number) {
  // Words that both sides have once, in one order.
  const counts = counted(ours, left, leftEnd);
  const others = counted(theirs, right, rightEnd);
  const places = new Map<string, number>();
  for (let at = right; at < rightEnd; at++) if (others.get(theirs[at]!) === 1) places.set(theirs[at]!, at);
  const found: Span[] = [];
  let last = -1;
  for (let at = left; at < leftEnd; at++) {
    const other = places.get(ours[at]!) ?? -1;
    if (other > last && counts.get(ours[at]!) === 1) {
      found.push([at, other]);
      last = other;
    }
  }
  return found;
}

function counted(words: string[], start: number, end: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (let at = start; at < end; at++) counts.set(words[at]!, (counts.get(words[at]!) ?? 0) + 1);
  return counts;
}

function spans(words: string[], kept: Set<number>, offset: number): Span[] {
  const found: Span[] = [];
  let open = -1;
  let column = offset;
  words.forEach((word, index) => {
    if (!kept.has(index)) {
      open = open < 0 ? column : open;
    } else if (open >= 0 && !(/^\s+$/.test(word) && index + 1 < words.length && !kept.has(index + 1))) {
      found.push([open, column]);
      open = -1;
    }
    column += word.length;
  });
  if (open >= 0) found.push([open, column]);
  return found;
}
