// Columns that are packed as runs.

/** The items of (item, count) again and again. */
export function runsOf<T>(runs: readonly (T | number)[]): T[] {
  const items: T[] = [];
  for (let at = 0; at < runs.length; at += 2) {
    for (let count = runs[at + 1] as number; count > 0; count--) items.push(runs[at] as T);
  }
  return items;
}

/** The numbers of (step from the number before, count) again and again. */
export function numbersOf(runs: readonly number[]): number[] {
  const numbers: number[] = [];
  let number = 0;
  for (let at = 0; at < runs.length; at += 2) {
    number += runs[at]!;
    for (let count = runs[at + 1]!; count > 0; count--) numbers.push(number++);
    number--;
  }
  return numbers;
}
