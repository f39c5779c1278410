// One pane of the Stages tab: a text, its lit lines, and what a word or a line of it means.
import type { App } from "../app";
import { definitions, shownText, type Whole } from "../code/aliases";
import { Pane, type Mark } from "../code/pane";
import { Strip } from "../code/strip";
import { hideTip, showTip } from "../code/tip";
import type { Annotations } from "../data/annotations";
import { marginsOf, tokensOf, type Value, type Values } from "../data/columns";
import type { Frame, Links, Near, Nearness } from "../data/links";
import type { Capture, Kind } from "../data/model";
import { button, fill, h } from "../dom";
import { fileName } from "../format";
import { state } from "../state";
import { lifeOf } from "./life";

export interface Source {
  id: string;
  title: string;
  kind: Kind;
  text: number;
  file: string;
  /** Lines of the file before the first one of the text. */
  offset: number;
}

interface Listeners {
  /** A line of the file, 0 for none. */
  hover(line: number): void;
  pin(line: number): void;
}

const MOST_LINES_LISTED = 12;

/** A share of the samples, a dot for a small one. */
const heatText = (share: number): string => (share >= 0.01 ? `${Math.round(100 * share)} %` : share > 0 ? "·" : "");

/** The registers beside a stage's instructions, or beside the lines of Python that they come from. */
function registersOf(annotations: Annotations, source: Source) {
  if (annotations.code.stage === source.id)
    return { sign: (line: number) => annotations.sign(line), told: (line: number) => annotations.told(line) };
  const lines = source.kind === "python" ? annotations.python(source.file) : new Map<number, never>();
  if (!lines.size) return undefined;
  return {
    sign: (line: number) => lines.get(line)?.live ?? "",
    told: (line: number) => {
      const one = lines.get(line);
      return one
        ? [one.live && `at most ${one.live} live registers in ${annotations.code.stage}`, one.marks]
            .filter(Boolean)
            .join("; ")
        : "";
    },
  };
}

/** The operation that may stand at a column of a line. */
function wordAt(line: string, column: number): string {
  for (const match of line.matchAll(/[%^#!@$.]?[\w$][\w$.:]*/g))
    if (column >= match.index && column <= match.index + match[0].length) return match[0];
  return "";
}

export class StagePane {
  readonly head = h("div", { class: "pane-head" });
  readonly info = h("span", { class: "pane-info" });
  readonly element = h("div", { class: "stage-pane" });
  /** The text's own lines. */
  readonly lines: string[];
  /** The rows that are shown, and the line that each of them is. */
  private readonly rows: string[];
  private readonly numbers: number[];
  private readonly pane: Pane;
  private readonly whole: Whole;
  /** Of a stage where its values are defined, and what its operations do. */
  private readonly values: Values | undefined;
  private readonly meanings: Record<string, string>;
  /** What the columns before an instruction mean. */
  private readonly columns: Record<string, string>;
  private near: Near | null = null;
  private readonly sourceLines = new Map<number, Nearness>();
  private own = 0;
  private value: Value | undefined;
  private aliases: Map<string, string> | undefined;
  /** Line -> the share of samples of stalled warps there, and what is known of it. */
  private readonly heat = new Map<number, { share: number; tip: string }>();
  /** What a gutter, and a tip, say of the live registers at a line; undefined where nothing is known of any. */
  private readonly registers: { sign: (line: number) => string; told: (line: number) => string } | undefined;

  constructor(
    private readonly app: App,
    private readonly capture: Capture,
    readonly source: Source,
    private readonly links: Links,
    private readonly listeners: Listeners,
  ) {
    this.lines = app.data.lines(source.text);
    this.whole = app.data.whole(source.text);
    const number = app.data.captures.indexOf(capture);
    this.values = app.data.valuesOf(number, source.id);
    const counted = app.data.counted(number);
    this.meanings = counted.meanings[source.id] ?? {};
    this.columns = counted.columns;
    const shown = shownText(this.whole, source.kind, {
      locations: state.flag("loc"),
      aliases: false,
      attributes: true,
    });
    this.rows = shown.lines;
    this.numbers = shown.numbers;
    const heat = app.data.heat(app.data.captures.indexOf(capture));
    for (const [line, stalled, tip] of heat?.lines[source.kind === "python" ? source.file : source.id] ?? []) {
      this.heat.set(line, { share: heat!.stalled ? stalled / heat!.stalled : 0, tip });
    }
    const annotations = state.flag("bare") ? undefined : app.data.annotations(app.data.captures.indexOf(capture));
    this.registers = annotations && registersOf(annotations, source);
    const holder = h("div", { class: "pane" });
    this.element.append(this.head, holder);
    this.pane = new Pane(holder, {
      hover: (row, column, event) => this.hover(row, column, event),
      leave: () => this.leave(),
      click: (row, column) => this.click(row, column),
    });
    this.pane.show({
      kind: source.kind,
      lines: this.rows,
      label: source.title,
      gutters: [
        ...(this.registers ? [(row: number) => this.registers!.sign(this.lineOf(row))] : []),
        ...(this.heat.size ? [(row: number) => heatText(this.heat.get(this.lineOf(row))?.share ?? 0)] : []),
        (row) => String((this.numbers[row - 1] ?? 0) + source.offset),
        // SASS has its control information beside it, where it takes no room from the instructions.
        ...(source.kind === "sass" && !state.flag("loc") ? [(row: number) => this.columnsOf(row)[0] ?? ""] : []),
      ],
      lineClass: (row) => this.classOf(row),
      marks: (row) => this.marksOf(row),
    });
    if (annotations && annotations.code.stage === source.id) {
      const strip = new Strip(annotations, this.numbers, (line) => {
        this.pane.goTo(this.rowOf(line));
        listeners.pin(line);
      });
      holder.append(strip.element);
      strip.follow(this.pane.view.scrollDOM);
    }
  }

  destroy(): void {
    this.pane.destroy();
  }

  focus(): void {
    this.pane.focus();
  }

  /** Brings the kernel's beginning into sight. */
  first(): void {
    if (state.text("at")) return;
    if (this.source.kind === "python" && this.source.file === this.capture.file)
      this.pane.goTo(this.rowOf(this.capture.line));
  }

  reveal(line: number): void {
    this.pane.reveal(this.rowOf(line));
  }

  /** The row that shows a line of the file, or the next one where that line is hidden. */
  private rowOf(line: number): number {
    const wanted = line - this.source.offset;
    let low = 0;
    let high = this.numbers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.numbers[middle]! < wanted) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  }

  private lineOf(row: number): number {
    return (this.numbers[row - 1] ?? 0) + this.source.offset;
  }

  forget(): void {
    this.value = undefined;
    this.say();
    this.pane.repaint();
  }

  /** The nearest line, in a direction, that comes from somewhere. */
  nextLine(from: number, by: number): number | undefined {
    const { kind, file, id } = this.source;
    for (
      let row = from > 0 ? this.rowOf(from) + by : by > 0 ? 1 : this.rows.length;
      row >= 1 && row <= this.rows.length;
      row += by
    ) {
      const line = this.lineOf(row);
      if (kind === "python" ? this.links.nearLine(file, line).chains.some(Boolean) : this.links.isLinked(id, line))
        return line;
    }
    return undefined;
  }

  /** Lights the lines that are near, or those of frames in a Python file; null puts the light out. */
  light(near: Near | null, frames: { file: string; line: number }[], own: number, scroll: boolean): void {
    this.near = near;
    this.own = own;
    this.sourceLines.clear();
    if (this.source.kind === "python") {
      frames.forEach(({ file, line }, depth) => {
        if (file === this.source.file && !this.sourceLines.has(line)) this.sourceLines.set(line, depth ? 1 : 2);
      });
    }
    this.pane.repaint();
    if (scroll && near) this.scrollToLight();
  }

  private nearness(row: number): Nearness {
    if (this.source.kind === "python") return this.sourceLines.get(this.lineOf(row)) ?? 0;
    if (!this.near) return 0;
    return this.links.nearness(this.near, this.source.id, this.lineOf(row));
  }

  private scrollToLight(): void {
    const { scrollTop, clientHeight } = this.pane.view.scrollDOM;
    const middle = this.pane.view.lineBlockAtHeight(scrollTop + clientHeight / 2);
    const center = this.pane.view.state.doc.lineAt(middle.from).number;
    let best = 0;
    for (const wanted of [2, 1] as const) {
      for (let row = 1; row <= this.rows.length; row++) {
        if (this.nearness(row) === wanted && (!best || Math.abs(row - center) < Math.abs(best - center))) best = row;
      }
      if (best) break;
    }
    if (best) this.pane.reveal(best);
  }

  private classOf(row: number): string {
    const near = this.nearness(row);
    const own = this.own === this.lineOf(row) ? " lit-own" : "";
    const share = this.heat.get(this.lineOf(row))?.share ?? 0;
    const heat = share >= 0.01 ? ` heat-${Math.min(4, Math.ceil(share * 20))}` : "";
    return (near === 2 ? "lit-strong" : near === 1 ? "lit-weak" : "") + own + heat;
  }

  private marksOf(row: number): Mark[] {
    const value = this.value;
    if (!value) return [];
    const at = this.lineOf(row);
    const isDefinition = value.definitions.includes(at);
    if (!isDefinition && !value.uses.includes(at)) return [];
    const style = isDefinition ? "value-definition" : "value-use";
    const line = this.rows[row - 1]!;
    return tokensOf(line)
      .filter(([name]) => name === value.name)
      .map(([name, from]) => ({ from, to: from + name.length, style }));
  }

  private hover(row: number, column: number, event: MouseEvent): void {
    this.listeners.hover(this.lineOf(row));
    const line = this.rows[row - 1]!;
    const word = wordAt(line, column);
    const meaning = this.meanings[word];
    const name = this.values?.nameAt(line, column);
    const alias = name && /^[#!]/.test(name) ? this.definition(name) : undefined;
    const columns = this.columnsOf(row).map((one) => this.columns[one]);
    const hot = this.heat.get(this.lineOf(row))?.tip;
    const registers = this.registers?.told(this.lineOf(row));
    showTip(
      event,
      meaning ? h("p", null, h("b", null, word), ` ${meaning}`) : null,
      alias ? h("p", null, h("b", null, name!), h("code", null, ` = ${alias}`)) : null,
      columns.length ? h("p", null, columns.join("; ")) : null,
      hot ? h("p", null, hot) : null,
      registers ? h("p", null, registers) : null,
      this.chainText(
        this.source.kind === "python" ? [] : this.links.frames(this.links.chainAt(this.source.id, this.lineOf(row))),
      ),
    );
  }

  /** The columns before an instruction, which a row leaves out. */
  private columnsOf(row: number): string[] {
    const number = this.numbers[row - 1] ?? 0;
    const [before] = marginsOf(this.lines[number - 1] ?? "", this.whole.plain.at(number));
    return before.split(/\s+/).filter((one) => one in this.columns);
  }

  private definition(name: string): string | undefined {
    this.aliases ??= definitions(this.lines);
    return this.aliases.get(name);
  }

  private chainText(frames: Frame[]): HTMLElement | null {
    if (!frames.length) return null;
    const rows = frames.map((frame, depth) => {
      const place = `${fileName(frame.file)}:${frame.line}${frame.column ? `:${frame.column}` : ""}`;
      const text = this.sourceLine(frame);
      return h(
        "li",
        null,
        h("span", { class: "faint" }, depth ? "called from " : ""),
        h("b", null, place),
        frame.function ? ` in ${frame.function}` : "",
        frame.name ? ` ${frame.name}` : "",
        text ? h("code", null, `  ${text}`) : null,
      );
    });
    return h("ol", { class: "chain" }, rows);
  }

  private sourceLine(frame: Frame): string {
    const found = this.capture.sources.find(([path]) => path === frame.file);
    if (found) return (this.app.data.lines(found[1])[frame.line - 1] ?? "").trim();
    if (frame.file !== this.capture.file || this.capture.kernelSource === undefined) return "";
    return (this.app.data.lines(this.capture.kernelSource)[frame.line - this.capture.firstLine] ?? "").trim();
  }

  private leave(): void {
    hideTip();
    this.listeners.hover(0);
  }

  private click(row: number, column: number): void {
    const name = this.values?.nameAt(this.rows[row - 1]!, column);
    this.value = name === undefined ? undefined : this.values?.of(name, this.lineOf(row));
    this.say();
    this.pane.repaint();
    this.info.append(
      ...lifeOf(this.app, this.app.data.captures.indexOf(this.capture), this.source.text, this.numbers[row - 1] ?? 0),
    );
    if (!name) this.listeners.pin(this.lineOf(row));
  }

  private say(): void {
    const value = this.value;
    if (!value) {
      fill(this.info);
      return;
    }
    const links = (rows: number[]) =>
      rows
        .slice(0, MOST_LINES_LISTED)
        .map((row) => [
          " ",
          button(String(row), `Go to line ${row}`, () => this.pane.goTo(this.rowOf(row)), { class: "link" }),
        ]);
    const layout =
      this.source.kind === "mlir" && value.name[0] === "#"
        ? button("layout", "Its thread map", () => state.set({ tab: "layouts", layout: value.name }))
        : null;
    fill(
      this.info,
      h("b", null, value.name),
      value.definitions.length ? [" defined", links(value.definitions)] : "",
      value.uses.length
        ? [` · ${value.uses.length} uses`, links(value.uses), value.uses.length > MOST_LINES_LISTED ? " …" : ""]
        : "",
      layout,
    );
  }
}
