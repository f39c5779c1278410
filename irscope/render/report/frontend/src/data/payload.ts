// Reads the data in the page: the index at once, everything else when it is looked at.
import { inflateSync } from "fflate";
import { bytesOf } from "./base64";
import type { Capture, Index, Layouts, Locations, Pass, Place, Tables } from "./model";
import { readDiff, type Diff, type PackedDiff } from "./diff";

interface PackedText {
  l: string;
  o?: number[];
}

const decoder = new TextDecoder();
const KEPT_TEXTS = 48;

function element(id: string): string {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page holds no data ${id}: the file is cut short`);
  return found.textContent ?? "";
}

function value<T>(bytes: Uint8Array): T {
  return JSON.parse(decoder.decode(inflateSync(bytes))) as T;
}

export class Payload {
  readonly index: Index = value<Index>(bytesOf(element("index")));
  private readonly chunks = new Map<number, Uint8Array>();
  private readonly texts = new Map<number, string[]>();
  private readonly values = new Map<string, unknown>();

  get captures(): Capture[] {
    return this.index.captures;
  }

  /** The lines of a text, by its number. */
  lines(number: number): string[] {
    const known = this.texts.get(number);
    if (known) {
      this.texts.delete(number);
      this.texts.set(number, known);
      return known;
    }
    const row = this.index.texts[number];
    if (!row) return [];
    const [chunk, offset, length, base] = row;
    const packed = value<PackedText>(this.bytes(chunk, [offset, length]));
    const lines = packed.o ? applied(this.lines(base), packed.l, packed.o) : packed.l.split("\n");
    this.texts.set(number, lines);
    for (const oldest of this.texts.keys()) {
      if (this.texts.size <= KEPT_TEXTS) break;
      this.texts.delete(oldest);
    }
    return lines;
  }

  locations(capture: number): Locations {
    return this.blob(capture, this.captures[capture]!.locations);
  }

  layouts(capture: number): Layouts {
    return this.blob(capture, this.captures[capture]!.layouts);
  }

  /** The structural diff of a pass; undefined where it changed nothing. */
  passDiff(capture: number, pass: Pass): Diff | undefined {
    if (!pass.diff || pass.before === undefined || pass.after === undefined) return undefined;
    return this.diff(capture, pass.diff, pass.before, pass.after);
  }

  pairTables(pair: number): Tables {
    return this.blob(this.captures.length, this.index.pairs[pair]!.tables);
  }

  pairDiff(pair: number, stage: string): Diff | undefined {
    const row = this.index.pairs[pair]!;
    const place = row.diffs[stage];
    const [left, right] = [row.left, row.right].map((n) => this.stageText(n, stage));
    if (!place || left === undefined || right === undefined) return undefined;
    return this.diff(this.captures.length, place, left, right);
  }

  stageText(capture: number, stage: string): number | undefined {
    return this.captures[capture]?.stages.find((row) => row.stage === stage)?.text;
  }

  private diff(chunk: number, place: Place, left: number, right: number): Diff {
    const key = `diff ${chunk} ${place[0]} ${left} ${right}`;
    let found = this.values.get(key) as Diff | undefined;
    if (!found) {
      found = readDiff(value<PackedDiff>(this.bytes(chunk, place)), this.lines(left), this.lines(right));
      this.values.set(key, found);
    }
    return found;
  }

  private blob<T>(chunk: number, place: Place): T {
    const key = `${chunk} ${place[0]}`;
    if (!this.values.has(key)) this.values.set(key, value<T>(this.bytes(chunk, place)));
    return this.values.get(key) as T;
  }

  private bytes(chunk: number, [offset, length]: Place): Uint8Array {
    let bytes = this.chunks.get(chunk);
    if (!bytes) {
      bytes = bytesOf(element(`chunk${chunk}`));
      this.chunks.set(chunk, bytes);
    }
    return bytes.subarray(offset, offset + length);
  }
}

function applied(base: string[], fresh: string, steps: number[]): string[] {
  const added = fresh.split("\n");
  added.pop();
  const lines: string[] = [];
  let at = 0;
  let end = 0;
  for (let index = 0; index < steps.length; index += 3) {
    const fresh = steps[index]!;
    for (let count = 0; count < fresh; count++) lines.push(added[at++]!);
    const start = end + steps[index + 1]!;
    end = start + steps[index + 2]!;
    for (let line = start; line < end; line++) lines.push(base[line]!);
  }
  while (at < added.length) lines.push(added[at++]!);
  return lines;
}
