// Reads the data in the page: the index at once, everything else when it is looked at.
import { Beside, type MachineCode } from "./beside";
import { Ahead } from "./ahead";
import { bytesOf } from "./base85";
import { countsOf, diffTexts, inflateSync, recent, Texts, WINDOW } from "./comparing";
import {
  hasDiff,
  textOf,
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
import { isSame, received, split, type Sent } from "./sent";
import type { Asked } from "../comparing";
import type { Counts } from "../structure/counts";
import type { Diff } from "./diff";
import { Lives, type PackedLives } from "./lives";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
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
  private readonly texts = new Texts(this.index.texts, (chunk) => this.chunk(chunk));
  private readonly values = new Map<string, unknown>();
  private readonly diffs = new Map<string, Diff>();
  /** What a worker answered, until it is first looked at. */
  private readonly receivedTexts = new Map<number, string>();
  private readonly receivedDiffs = new Map<string, Sent>();
  /** The comparisons that a worker made and found no difference by. */
  private readonly same = new Set<string>();
  private readonly machineCode = new Map<number, Beside>();
  private readonly followed = new Map<number, Lives>();
  readonly ahead = new Ahead({
    rows: this.index.texts,
    bytes: (chunk) => this.chunk(chunk),
    has: (asked) => this.has(asked),
    take: (asked, answer) => {
      if ("text" in answer && "text" in asked) recent(this.receivedTexts, asked.text, KEPT_DIFFS, () => answer.text);
      if (!("diff" in answer && "left" in asked)) return;
      recent(this.receivedDiffs, keyOf(asked), KEPT_DIFFS, () => answer.diff);
      if (isSame(answer.diff)) this.same.add(keyOf(asked));
    },
  });

  /** The lines of a text, by its number. */
  lines(number: number): string[] {
    const received = this.receivedTexts.get(number);
    if (received !== undefined) {
      this.receivedTexts.delete(number);
      this.texts.take(number, split(received));
    }
    return this.texts.lines(number);
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

  /** What must be known to show a pass, with the locations of its lines or without. */
  needsOf(pass: Pass, locations: boolean): Asked[] {
    const { before, after, group } = pass;
    const texts = (...numbers: (number | undefined)[]) =>
      numbers.flatMap((text) => (text === undefined ? [] : [{ text }]));
    if (!hasDiff(pass)) return texts(textOf(pass));
    const diff = { left: before!, right: after!, kind: group };
    if (locations) return [diff, ...texts(before, after)];
    return this.same.has(keyOf(diff)) ? [diff, ...texts(textOf(pass))] : [diff];
  }

  /** Whether a pass is shown without any work that takes long, where another than the page does such work. */
  isReady(pass: Pass, locations: boolean): boolean {
    return !this.ahead.works || this.needsOf(pass, locations).every((asked) => this.has(asked));
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

  /** Whether a text is unpacked, or two are compared. */
  private has(asked: Asked): boolean {
    if ("text" in asked) return this.receivedTexts.has(asked.text) || this.texts.has(asked.text);
    const key = keyOf(asked);
    return this.diffs.has(key) || this.receivedDiffs.has(key);
  }

  private diff(left: number, right: number, kind: Kind): Diff {
    const key = keyOf({ left, right, kind });
    const lines = [() => this.lines(left), () => this.lines(right)] as const;
    return recent(this.diffs, key, KEPT_DIFFS, () => {
      const from = this.receivedDiffs.get(key);
      this.receivedDiffs.delete(key);
      return from ? received(from, ...lines) : diffTexts(lines[0](), lines[1](), kind);
    });
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
    return this.chunk(chunk).subarray(offset, offset + length);
  }

  private chunk(number: number): Uint8Array {
    let bytes = this.chunks.get(number);
    if (!bytes) this.chunks.set(number, (bytes = bytesOf(element(`chunk${number}`))));
    return bytes;
  }
}

function keyOf({ left, right, kind }: { left: number; right: number; kind: Kind }): string {
  return `${left} ${right} ${kind}`;
}
