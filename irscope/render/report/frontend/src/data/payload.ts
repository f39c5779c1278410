// Reads the data in the page: the index at once, everything else when it is looked at.
import { Annotations, type MachineCode } from "./annotations";
import { inflateSync } from "fflate";
import { bytesOf } from "./base85";
import { Values, type PackedValues } from "./columns";
import { comparedByLine, reversed, unpacked, type Diff, type PackedDiff } from "./diff";
import {
  hasDiff,
  type CaptureRow,
  type Capture,
  type Counted,
  type Graph,
  type Heat,
  type Index,
  type Kind,
  type Layouts,
  type Locations,
  type Pass,
  type Place,
  type Predicted,
} from "./model";
import type { Memory } from "./memory";
import type { Movie } from "./movie";
import { recent, Texts, WINDOW } from "./texts";
import type { Whole } from "../code/aliases";
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
  private readonly machineCode = new Map<number, Annotations>();
  private readonly followed = new Map<number, Lives>();

  /** The lines of a text, by its number. */
  lines(number: number): string[] {
    return this.texts.lines(number);
  }

  /** A text with its lines without locations. */
  whole(number: number): Whole {
    return { lines: () => this.texts.lines(number), plain: this.texts.plain(number) };
  }

  counted(capture: number): Counted {
    return this.blob(capture, this.captures[capture]!.counted);
  }

  /** The values of a stage's text; undefined for a text that is no stage's. */
  valuesOf(capture: number, stage: string): Values | undefined {
    const row = this.captures[capture]?.stages.find((one) => one.stage === stage);
    if (row?.text === undefined || !row.values) return undefined;
    return new Values(this.texts.plain(row.text), this.blob<PackedValues>(capture, row.values));
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
  annotations(capture: number): Annotations | undefined {
    const place = this.captures[capture]!.annotations;
    if (place && !this.machineCode.has(capture))
      this.machineCode.set(capture, new Annotations(this.blob<MachineCode>(capture, place)));
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

  /** The predicted time of the launch; undefined where there is none. */
  predicted(capture: number): Predicted | undefined {
    const { time } = this.captures[capture]!;
    return time && this.blob(capture, time.tables);
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

  /** The diff of a pass; undefined where it changed nothing. */
  passDiff(capture: number, pass: Pass): Diff | undefined {
    if (!hasDiff(pass)) return undefined;
    const [left, right] = [pass.before!, pass.after!];
    return this.diff(left, right, () =>
      pass.diff
        ? unpacked(this.blob<PackedDiff>(capture, pass.diff), this.texts.plain(left), this.texts.plain(right))
        : this.byLine(left, right, pass.group),
    );
  }

  /** The diff of a stage of two captures; undefined where the texts are the same, or one side has none. */
  stageDiff(left: number, right: number, stage: string): Diff | undefined {
    const [one, other] = [this.stageText(left, stage), this.stageText(right, stage)];
    if (one === undefined || other === undefined || one === other) return undefined;
    return this.diff(one, other, () => {
      const made = this.made(left, right, stage);
      if (made) return unpacked(made, this.texts.plain(one), this.texts.plain(other));
      const turned = this.made(right, left, stage);
      if (turned)
        return reversed(unpacked(turned, this.texts.plain(other), this.texts.plain(one)), turned.reversed ?? "");
      return this.byLine(one, other, this.captures[left]!.stages.find((row) => row.stage === stage)!.kind);
    });
  }

  /** How often each operation or instruction occurs in a stage's text; empty for a binary. */
  operations(capture: number, stage: string): Map<string, number> {
    return new Map(Object.entries(this.counted(capture).operations[stage] ?? {}));
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

  /** The diff of a stage that Python made of two captures, in this order. */
  private made(left: number, right: number, stage: string): PackedDiff | undefined {
    const { compared } = this.captures[right]!;
    const place = compared?.with === left ? compared.stages[stage] : undefined;
    return place && this.blob(right, place);
  }

  private byLine(left: number, right: number, kind: Kind): Diff {
    return comparedByLine(
      [this.texts.plain(left), this.texts.plain(right)],
      [this.texts.keys(left), this.texts.keys(right)],
      kind,
      this.index.lineByLine,
    );
  }

  private diff(left: number, right: number, make: () => Diff): Diff {
    return recent(this.diffs, `${left} ${right}`, KEPT_DIFFS, make);
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
