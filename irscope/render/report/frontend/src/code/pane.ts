// A pane of code: a read-only editor that draws only what is in sight, whatever the text's length.
import { Compartment, EditorState, StateEffect, Text, type Extension, type Range } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  gutter,
  GutterMarker,
  highlightSpecialChars,
  keymap,
  ViewPlugin,
  type DecorationSet,
  type ViewUpdate,
} from "@codemirror/view";
import { search, searchKeymap } from "@codemirror/search";
import { copy } from "../copy";
import type { Kind } from "../data/model";
import { hitCount } from "./hits";
import { wordsOf } from "./words";

export interface Mark {
  from: number;
  to: number;
  style: string;
}

/** What a pane asks about its lines; line numbers are 1-based rows of the pane. */
export interface Look {
  kind: Kind;
  lines: string[];
  /** The class of a whole line. */
  lineClass?(row: number): string;
  /** Marks within a line, over the colours of its language. */
  marks?(row: number): Mark[];
  /** What the gutters say of a line, one text a gutter. */
  gutters?: ((row: number) => string)[];
  label?: string;
}

export interface Listeners {
  hover?(row: number, column: number, event: MouseEvent): void;
  leave?(): void;
  click?(row: number, column: number, event: MouseEvent): void;
}

/** Columns that are coloured until a pane's width is known. */
const FIRST_COLUMNS = 160;
const repaint = StateEffect.define<null>();
const lineMarks = new Map<string, Decoration>();
const wordMarks = new Map<string, Decoration>();

function lineMark(style: string): Decoration {
  let found = lineMarks.get(style);
  if (!found) lineMarks.set(style, (found = Decoration.line({ class: style })));
  return found;
}

function wordMark(style: string): Decoration {
  let found = wordMarks.get(style);
  if (!found) wordMarks.set(style, (found = Decoration.mark({ class: style })));
  return found;
}

export class Pane {
  readonly view: EditorView;
  private look: Look = { kind: "text", lines: [""] };
  private readonly columns = new Compartment();

  constructor(parent: HTMLElement, listeners: Listeners = {}) {
    this.view = new EditorView({ parent, state: this.state() });
    const dom = this.view.contentDOM;
    dom.addEventListener("mousemove", (event) => this.at(event, listeners.hover));
    for (const name of ["mousedown", "blur"])
      dom.addEventListener(name, () => this.view.dom.classList.remove("all-taken"));
    dom.addEventListener("mouseleave", () => listeners.leave?.());
    dom.addEventListener("click", (event) => this.at(event, listeners.click));
  }

  get row(): number {
    return this.view.state.doc.lineAt(this.view.state.selection.main.head).number;
  }

  /** Shows other lines, from the first one on or around a row, drawn once: the editor stays the one it is. */
  show(look: Look, row = 0): void {
    const columns = (one: Look) => one.gutters?.length ?? 1;
    const others = columns(look) !== columns(this.look);
    this.look = look;
    const insert = Text.of(look.lines.length ? look.lines : [""]);
    const anchor = row > 0 && row <= insert.lines ? insert.line(row).from : 0;
    const scroll = anchor ? [EditorView.scrollIntoView(anchor, { y: "center" })] : [];
    this.view.dispatch({
      changes: { from: 0, to: this.view.state.doc.length, insert },
      selection: { anchor },
      effects: [...scroll, ...(others ? [this.columns.reconfigure(this.gutters())] : [])],
    });
    // CodeMirror would scroll the page to the pane too.
    if (!anchor) this.view.scrollDOM.scrollTo(0, 0);
  }

  /** Asks for the classes and marks again. */
  repaint(): void {
    this.view.dispatch({ effects: repaint.of(null) });
  }

  /** Brings a row into sight, and the cursor on it. */
  goTo(row: number, y: "center" | "nearest" = "center"): void {
    const doc = this.view.state.doc;
    if (row < 1 || row > doc.lines) return;
    const position = doc.line(row).from;
    this.view.dispatch({ selection: { anchor: position }, effects: EditorView.scrollIntoView(position, { y }) });
  }

  /** Brings a row into sight if it is out of it; the cursor stays. */
  reveal(row: number): void {
    const doc = this.view.state.doc;
    if (row < 1 || row > doc.lines) return;
    const { from, to } = this.view.viewport;
    const position = doc.line(row).from;
    const block = position >= from && position <= to ? this.view.lineBlockAt(position) : null;
    const { scrollTop, clientHeight } = this.view.scrollDOM;
    if (block && block.top >= scrollTop && block.bottom <= scrollTop + clientHeight) return;
    this.view.dispatch({ effects: EditorView.scrollIntoView(position, { y: "center" }) });
  }

  focus(): void {
    this.view.focus();
  }

  destroy(): void {
    this.view.destroy();
  }

  private at(event: MouseEvent, listener?: (row: number, column: number, event: MouseEvent) => void): void {
    if (!listener) return;
    const position = this.view.posAtCoords({ x: event.clientX, y: event.clientY });
    if (position === null) return;
    const line = this.view.state.doc.lineAt(position);
    listener(line.number, position - line.from, event);
  }

  /** Takes the whole text, of which the editor draws but a part; until something else is pointed at. */
  private takeAll(): boolean {
    this.view.dom.classList.add("all-taken");
    return true;
  }

  private copyAll(): boolean {
    if (!this.view.dom.classList.contains("all-taken")) return false;
    void copy(this.view.state.doc.toString());
    return true;
  }

  private gutters(): Extension[] {
    return (this.look.gutters ?? [String]).map((_, index) =>
      gutterOf((row) => (this.look.gutters?.[index] ?? String)(row)),
    );
  }

  private state(): EditorState {
    return EditorState.create({
      extensions: [
        EditorState.lineSeparator.of("\n"),
        EditorState.readOnly.of(true),
        EditorView.editable.of(false),
        EditorView.cspNonce.of(nonce()),
        EditorView.contentAttributes.of(() => ({
          tabindex: "0",
          "aria-label": this.look.label ?? "code",
          "aria-readonly": "true",
        })),
        highlightSpecialChars(),
        search({ top: true }),
        hitCount,
        keymap.of([
          { key: "Mod-a", run: () => this.takeAll() },
          { key: "Mod-c", run: () => this.copyAll() },
        ]),
        keymap.of(searchKeymap),
        this.columns.of(this.gutters()),
        painter(() => this.look),
      ],
    });
  }
}

class Label extends GutterMarker {
  constructor(private readonly text: string) {
    super();
  }
  override eq(other: Label): boolean {
    return other.text === this.text;
  }
  override toDOM(): Node {
    return document.createTextNode(this.text);
  }
}

function gutterOf(text: (row: number) => string): Extension {
  return gutter({
    class: "cm-labels",
    lineMarker: (view, block) => new Label(text(view.state.doc.lineAt(block.from).number)),
    initialSpacer: (view) => new Label(widest(text, view.state.doc.lines)),
    updateSpacer: (spacer, update) => (update.docChanged ? new Label(widest(text, update.state.doc.lines)) : spacer),
  });
}

/** The longest label of a few rows: numbers grow towards the end. */
function widest(text: (row: number) => string, rows: number): string {
  let longest = "";
  for (let row = rows, step = Math.max(1, Math.floor(rows / 40)); row > 0; row -= step) {
    const label = text(row);
    if (label.length > longest.length) longest = label;
  }
  return longest;
}

let known: string | undefined;

function nonce(): string {
  known ??= document.getElementById("style")?.nonce ?? "";
  return known;
}

function painter(look: () => Look): Extension {
  return ViewPlugin.fromClass(
    class {
      decorations: DecorationSet;
      /** Columns that are coloured: of lines of thousands of characters most are out of sight. */
      private columns = FIRST_COLUMNS;
      private width = FIRST_COLUMNS;
      private readonly scrolled: () => void;
      constructor(readonly view: EditorView) {
        this.decorations = painted(view, look(), this.columns);
        this.scrolled = () => {
          const { scrollLeft } = view.scrollDOM;
          if (scrollLeft / view.defaultCharacterWidth + this.width < this.columns) return;
          this.columns = Math.ceil((scrollLeft / view.defaultCharacterWidth + 2 * this.width) * 2);
          view.dispatch({ effects: repaint.of(null) });
        };
        view.scrollDOM.addEventListener("scroll", this.scrolled, { passive: true });
      }
      update(update: ViewUpdate): void {
        if (update.geometryChanged) {
          this.view.requestMeasure({
            key: this,
            read: (view) => Math.ceil(view.scrollDOM.clientWidth / view.defaultCharacterWidth),
            write: (width, view) => {
              this.width = Math.max(width, 1);
              if (this.width > this.columns) queueMicrotask(() => view.dispatch({ effects: repaint.of(null) }));
            },
          });
        }
        const asked = update.transactions.some((one) => one.effects.some((effect) => effect.is(repaint)));
        // Another text is shown from its first column on.
        this.columns = update.docChanged ? this.width : Math.max(this.columns, this.width);
        if (update.docChanged || update.viewportChanged || asked)
          this.decorations = painted(update.view, look(), this.columns);
      }
      destroy(): void {
        this.view.scrollDOM.removeEventListener("scroll", this.scrolled);
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );
}

function painted(view: EditorView, look: Look, columns: number): DecorationSet {
  const ranges: Range<Decoration>[] = [];
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to;) {
      const line = view.state.doc.lineAt(at);
      const style = look.lineClass?.(line.number);
      if (style) ranges.push(lineMark(style).range(line.from));
      for (const word of wordsOf(line.text.slice(0, columns), look.kind)) {
        ranges.push(wordMark(`w-${word.style}`).range(line.from + word.from, line.from + word.to));
      }
      for (const mark of look.marks?.(line.number) ?? []) {
        const end = Math.min(mark.to, line.length);
        if (mark.from < end) ranges.push(wordMark(mark.style).range(line.from + mark.from, line.from + end));
      }
      at = line.to + 1;
    }
  }
  return Decoration.set(ranges, true);
}
