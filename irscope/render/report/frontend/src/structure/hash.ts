// Numbers that stand for texts and rows of numbers: equal ones are equal, others differ but for one in 2^52.

const HIGH = 4294967296;

/** The hash of a text. */
export function textHash(text: string): number {
  let one = 0xdeadbeef;
  let other = 0x41c6ce57;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 0x9e3779b1);
    other = Math.imul(other ^ code, 0x5f356495);
  }
  return finished(one, other);
}

/** The hash of some numbers in their order, hashes among them. */
export function rowHash(numbers: readonly number[]): number {
  let one = 0x2545f491;
  let other = 0x7ed55d16;
  for (let at = 0; at < numbers.length; at++) {
    const number = numbers[at]!;
    one = Math.imul(one ^ number, 0x9e3779b1);
    one = Math.imul((one ^ (one >>> 15)) + number / HIGH, 0x85ebca6b);
    other = Math.imul(other ^ number, 0x5f356495);
    other = Math.imul(other ^ (other >>> 13) ^ (number / HIGH), 0xc2b2ae35);
  }
  return finished(one, other);
}

function finished(one: number, other: number): number {
  one = Math.imul(one ^ (one >>> 16), 0x85ebca6b) ^ Math.imul(other ^ (other >>> 13), 0xc2b2ae35);
  other = Math.imul(other ^ (other >>> 16), 0x85ebca6b) ^ Math.imul(one ^ (one >>> 13), 0xc2b2ae35);
  return HIGH * (other & 0xfffff) + (one >>> 0);
}
