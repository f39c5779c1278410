// Base 85 as Python's `base64.b85encode` has it, but for the characters that HTML reads as its own: four bytes in five.
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%/()*+-;,=.?@^_`{|}~";
const VALUES = new Uint8Array(128);
for (let value = 0; value < LETTERS.length; value++) VALUES[LETTERS.charCodeAt(value)] = value;

/** The bytes that a text stands for. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const groups = Math.ceil(text.length / 5);
  const padded = text.padEnd(groups * 5, "~");
  const bytes = new Uint8Array(groups * 4);
  for (let group = 0, from = 0; group < groups; group++) {
    let word = 0;
    for (const end = from + 5; from < end; from++) word = word * 85 + VALUES[padded.charCodeAt(from)]!;
    bytes[4 * group] = word >>> 24;
    bytes[4 * group + 1] = word >>> 16;
    bytes[4 * group + 2] = word >>> 8;
    bytes[4 * group + 3] = word;
  }
  return bytes.subarray(0, bytes.length - (padded.length - text.length));
}
