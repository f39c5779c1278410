// Reads the data in the page: the index at once, everything else when it is looked at.
import { Beside, type MachineCode } from "./beside";
import { inflateSync } from "fflate";
import { bytesOf } from "./base85";
import {
  hasDiff,
  type CaptureRow,
  type Capture,
  type Graph,
  type Heat,
  type Index,
  type Kind,
  type Layouts,
  type Locations,
  type Pass,
  type Place,
} from "./model";
import type { Memory } from "./memory";
import type { Movie } from "./movie";
import { withNumbers } from "./numbers";
import { diffTexts } from "../structure/structural";
import { countsOf, type Counts } from "../structure/counts";
import type { Diff } from "./diff";
import { Lives, type PackedLives } from "./lives";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();
/** How far back a compressed text may point. */
const WINDOW = 1 << 15;
const KEPT_TEXTS = 96;
const KEPT_DIFFS = 80;

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
  readonly captures: Capture[] = this.index.captures.map((row, number) => this.capture(row, number));
  private readonly chunks = new Map<number, Uint8Array>();
  private readonly texts = new Map<number, string[]>();
  private readonly packed = new Map<number, string[]>();
  private readonly values = new Map<string, unknown>();
  private readonly diffs = new Map<string, Diff>();
  private readonly machineCode = new Map<number, Beside>();
  private readonly followed = new Map<number, Lives>();

  /** The lines of a text, by its number. */
  lines(number: number): string[] {
    const known = this.texts.get(number);
    if (known) {
      this.texts.delete(number);
      this.texts.set(number, known);
      return known;
    }
    const stored = this.stored(number);
    const lines = this.index.texts[number]?.[5] ? withNumbers(stored) : stored;
    this.texts.set(number, lines);
    for (const oldest of this.texts.keys()) {
      if (this.texts.size <= KEPT_TEXTS) break;
      this.texts.delete(oldest);
    }
    return lines;
  }

  /** The lines of a text as the page holds them. */
  private stored(number: number): string[] {
    const known = this.packed.get(number);
    if (known) return known;
    const row = this.index.texts[number];
    if (!row) return [];
    const [chunk, offset, length, cut, base] = row;
    const bytes = this.bytes(chunk, [offset + cut, length - cut]);
    const lines =
      base < 0
        ? decoder.decode(inflateSync(bytes)).split("\n")
        : applied(this.stored(base), value<number[]>(this.bytes(chunk, [offset, cut])), bytes);
    this.packed.set(number, lines);
    for (const oldest of this.packed.keys()) {
      if (this.packed.size <= KEPT_TEXTS) break;
      this.packed.delete(oldest);
    }
    return lines;
  }

  locations(capture: number): Locations {
    return this.blob(capture, this.captures[capture]!.locations);
  }

  /** Where warps waited; undefined where the launch was not profiled. */
  heat(capture: number): Heat | undefined {
    const place = this.captures[capture]!.heat;
    return place && this.blob(capture, place);
  }

  /** What stands beside the machine code; undefined where the capture holds none. */
  beside(capture: number): Beside | undefined {
    const place = this.captures[capture]!.beside;
    if (place && !this.machineCode.has(capture))
      this.machineCode.set(capture, new Beside(this.blob<MachineCode>(capture, place)));
    return this.machineCode.get(capture);
  }

  lives(capture: number): Lives {
    let found = this.followed.get(capture);
    if (!found) {
      found = new Lives(this.blob<PackedLives>(capture, this.captures[capture]!.lives));
      this.followed.set(capture, found);
    }
    return found;
  }

  /** The passes that changed the kernel; undefined in a report of many captures. */
  movie(capture: number): Movie | undefined {
    const number = this.captures[capture]!.movie;
    if (number === undefined) return undefined;
    const key = `movie ${number}`;
    if (!this.values.has(key)) this.values.set(key, JSON.parse(this.lines(number).join("")));
    return this.values.get(key) as Movie;
  }

  layouts(capture: number): Layouts {
    return this.blob(capture, this.captures[capture]!.layouts);
  }

  graphs(capture: number): Graph[] {
    return this.blob(capture, this.captures[capture]!.graphs);
  }

  memory(capture: number): Memory {
    return this.blob(capture, this.captures[capture]!.memory);
  }

  /** The structural diff of a pass; undefined where it changed nothing. */
  passDiff(pass: Pass): Diff | undefined {
    return hasDiff(pass) ? this.diff(pass.before!, pass.after!, pass.group) : undefined;
  }

  /** The structural diff of a stage of two captures; undefined where the texts are the same, or one side has none. */
  stageDiff(left: number, right: number, stage: string): Diff | undefined {
    const [one, other] = [this.stageText(left, stage), this.stageText(right, stage)];
    if (one === undefined || other === undefined || one === other) return undefined;
    return this.diff(one, other, this.captures[left]!.stages.find((row) => row.stage === stage)!.kind);
  }

  /** How often each operation or instruction occurs in a stage's text; empty for a binary. */
  operations(capture: number, stage: string): Counts {
    const row = this.captures[capture]?.stages.find((one) => one.stage === stage);
    return row?.text === undefined ? new Map() : countsOf(this.lines(row.text), row.kind);
  }

  stageText(capture: number, stage: string): number | undefined {
    return this.captures[capture]?.stages.find((row) => row.stage === stage)?.text;
  }

  /** A capture, whose passes are unpacked when they are first looked at. */
  private capture(row: CaptureRow, number: number): Capture {
    const passes = () => this.blob<Pass[]>(number, row.passes);
    return {
      ...row,
      get passes() {
        return passes();
      },
    };
  }

  private diff(left: number, right: number, kind: Kind): Diff {
    const key = `${left} ${right} ${kind}`;
    const known = this.diffs.get(key);
    if (known) return known;
    const found = diffTexts(this.lines(left), this.lines(right), kind);
    this.diffs.set(key, found);
    for (const oldest of this.diffs.keys()) {
      if (this.diffs.size <= KEPT_DIFFS) break;
      this.diffs.delete(oldest);
    }
    return found;
  }

  private blob<T>(chunk: number, place: Place): T {
    const key = `${chunk} ${place[0]}`;
    if (!this.values.has(key)) this.values.set(key, JSON.parse(decoder.decode(this.unpacked(chunk, place))));
    return this.values.get(key) as T;
  }

  private unpacked(chunk: number, [offset, length, ...base]: Place): Uint8Array {
    const bytes = this.bytes(chunk, [offset, length]);
    const [of, from, size] = base;
    if (of === undefined || from === undefined || size === undefined) return inflateSync(bytes);
    return inflateSync(bytes, { dictionary: this.unpacked(of, [from, size]).subarray(-WINDOW) });
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

/** The lines that a base and what is new make. */
function applied(base: string[], steps: number[], fresh: Uint8Array): string[] {
  const copied = new Uint8Array(base.length);
  const starts: number[] = [];
  for (let index = 0, end = 0; index < steps.length; index += 3) {
    const start = end + steps[index + 1]!;
    end = start + steps[index + 2]!;
    starts.push(start);
    copied.fill(1, start, end);
  }
  // What is new was compressed with the lines that are copied nowhere at hand.
  const likely = encoder.encode(base.filter((_, line) => !copied[line]).join("\n")).subarray(-WINDOW);
  const added = decoder.decode(inflateSync(fresh, { dictionary: likely })).split("\n");
  added.pop();
  const lines: string[] = [];
  let at = 0;
  starts.forEach((start, index) => {
    for (const end = at + steps[3 * index]!; at < end; at++) lines.push(added[at]!);
    for (let line = start; line < start + steps[3 * index + 2]!; line++) lines.push(base[line]!);
  });
  while (at < added.length) lines.push(added[at++]!);
  return lines;
}
