// A diff on screen: unified in one pane, or side by side in two that scroll as one.
import { searchPanelOpen } from "@codemirror/search";
import type { Diff } from "../data/diff";
import { wordMarks, type Span } from "../data/marks";
import { Pane, type Listeners, type Look, type Mark } from "../code/pane";
import { plural } from "../format";
import { h } from "../dom";
import { rowsOf, type Row, type Shown } from "./rows";

/** A line (1-based) of the text before or after. */
export interface Place {
  before: boolean;
  line: number;
}

export interface DiffListeners {
  click?(text: string, column: number, lines: string[], place: Place): void;
}

interface Line {
  row: Row;
  side: "left" | "right" | "both";
}

const SIGNS: Record<string, string> = { added: "+", removed: "−", changed: "±", moved: "↕", fold: "⋯", quiet: "·" };

export class DiffView {
  readonly element = h("div", { class: "diff" });
  private panes: Pane[] = [];
  private rows: Row[] = [];
  private lines: Line[] = [];
  private open = new Set<number>();
  private diff: Diff | undefined;
  private shown: Shown = { left: [], right: [] };
  private split = false;
  private current = -1;
  private readonly marks = new Map<Row, [Span[], Span[]]>();

  constructor(private readonly listeners: DiffListeners = {}) {}

  get hasFocus(): boolean {
    return this.panes.some((pane) => pane.view.hasFocus);
  }

  get isSearched(): boolean {
    return this.panes.some((pane) => searchPanelOpen(pane.view.state));
  }

  show(diff: Diff, shown: Shown, split: boolean): void {
    if (diff !== this.diff) this.open.clear();
    this.diff = diff;
    this.shown = shown;
    if (split !== this.split || !this.panes.length) this.build(split);
    this.draw();
  }

  /** Goes to the next change, or with -1 to the one before. */
  step(by: 1 | -1): void {
    const count = this.split ? this.rows.length : this.lines.length;
    const differs = (at: number) => isChange(this.split ? this.rows[at] : this.lines[at]?.row);
    let at = this.current;
    if (at >= 0) while (differs(at)) at += by;
    else at = by > 0 ? 0 : count - 1;
    while (at >= 0 && at < count && !differs(at)) at += by;
    if (at < 0 || at >= count) return;
    this.current = at;
    for (const pane of this.panes) pane.goTo(at + 1);
  }

  /** The diff as a text, as `diff -u` writes one. */
  text(): string {
    if (!this.diff) return "";
    const left = (row: Row) => `-${this.textOf(row, "left")}`;
    const right = (row: Row) => `+${this.textOf(row, "right")}`;
    const lines: string[] = [];
    const after: string[] = [];
    for (const row of rowsOf(this.diff, this.shown, new Set())) {
      const differs = isChange(row);
      // Of neighbours that changed first what was, then what is.
      if (!differs) lines.push(...after.splice(0));
      if (row.op === "fold") lines.push(`@@ ${plural(row.count, "equal line")} @@`);
      else if (!differs) lines.push(` ${this.textOf(row, "both")}`);
      else {
        if (row.left >= 0) lines.push(left(row));
        if (row.right >= 0) after.push(right(row));
      }
    }
    return [...lines, ...after].join("\n");
  }

  focus(): void {
    this.panes[0]?.focus();
  }

  private build(split: boolean): void {
    for (const pane of this.panes) pane.destroy();
    this.element.replaceChildren();
    this.split = split;
    this.element.classList.toggle("split", split);
    this.panes = (split ? [0, 1] : [0]).map((side) => {
      const holder = h("div", { class: "pane" });
      this.element.append(holder);
      return new Pane(holder, this.clicks(side));
    });
    const [left, right] = this.panes;
    if (left && right) together(left.view.scrollDOM, right.view.scrollDOM);
  }

  private clicks(side: number): Listeners {
    return {
      click: (number, column) => {
        const row = this.split ? this.rows[number - 1] : this.lines[number - 1]?.row;
        if (row?.op === "fold") {
          this.open.add(row.fold);
          this.draw(true);
          return;
        }
        const text = this.panes[side]?.view.state.doc.line(number).text ?? "";
        const before = this.split ? side === 0 : row?.right === -1;
        const numbers = before ? this.diff?.leftNumbers : this.diff?.rightNumbers;
        const line = numbers?.[(before ? row?.left : row?.right) ?? -1] ?? 0;
        this.listeners.click?.(text, column, before ? this.shown.left : this.shown.right, { before, line });
      },
    };
  }

  private draw(stay = false): void {
    const diff = this.diff;
    if (!diff) return;
    // Asking where it is scrolled to lays out the page.
    const tops = stay ? this.panes.map((pane) => pane.view.scrollDOM.scrollTop) : [];
    this.marks.clear();
    this.current = -1;
    // Unfolding one fold renumbers none: folds are counted before they are opened.
    this.rows = rowsOf(diff, this.shown, this.open);
    if (this.split) this.drawSides(diff);
    else this.drawUnified(diff);
    tops.forEach((top, index) => (this.panes[index]!.view.scrollDOM.scrollTop = top));
  }

  /** The first row that differs, 1-based; 0 for none. */
  private first(rows: Row[]): number {
    return rows.findIndex((row) => isChange(row)) + 1;
  }

  private drawUnified(diff: Diff): void {
    const lines: Line[] = [];
    // Neighbouring changed lines stand together: what was, then what is.
    for (let at = 0; at < this.rows.length;) {
      const row = this.rows[at]!;
      if (row.op !== "changed" && row.op !== "quiet") {
        lines.push({ row, side: "both" });
        at++;
        continue;
      }
      let end = at;
      while (this.rows[end]?.op === row.op) end++;
      const group = this.rows.slice(at, end);
      if (row.op === "changed") lines.push(...group.map((one): Line => ({ row: one, side: "left" })));
      lines.push(...group.map((one): Line => ({ row: one, side: "right" })));
      at = end;
    }
    this.lines = lines;
    const look: Look = {
      kind: diff.kind,
      label: "diff",
      lines: lines.map((line) => this.textOf(line.row, line.side)),
      lineClass: (number) => styleOf(lines[number - 1]!),
      marks: (number) => this.marksOf(lines[number - 1]!),
      gutters: [
        (number) => numberOf(lines[number - 1], "left", diff.leftNumbers),
        (number) => numberOf(lines[number - 1], "right", diff.rightNumbers),
        (number) => signOf(lines[number - 1]),
      ],
    };
    this.panes[0]!.show(look, this.first(lines.map((line) => line.row)));
  }

  private drawSides(diff: Diff): void {
    const sides = ["left", "right"] as const;
    const first = this.first(this.rows);
    sides.forEach((side, index) => {
      const numbers = side === "left" ? diff.leftNumbers : diff.rightNumbers;
      const line = (number: number): Line => ({ row: this.rows[number - 1]!, side });
      const look: Look = {
        kind: diff.kind,
        label: side === "left" ? "before" : "after",
        lines: this.rows.map((row) => this.textOf(row, side)),
        lineClass: (number) => styleOf(line(number)),
        marks: (number) => this.marksOf(line(number)),
        gutters: [(number) => numberOf(line(number), side, numbers)],
      };
      this.panes[index]!.show(look, first);
    });
  }

  private textOf(row: Row, side: Line["side"]): string {
    if (row.op === "fold") return `⋯ ${plural(row.count, "equal line")}`;
    if (side === "left") return row.left < 0 ? "" : this.shown.left[row.left]!;
    if (side === "right") return row.right < 0 ? "" : this.shown.right[row.right]!;
    return row.right >= 0 ? this.shown.right[row.right]! : this.shown.left[row.left]!;
  }

  private marksOf({ row, side }: Line): Mark[] {
    if ((row.op !== "changed" && row.op !== "quiet") || side === "both") return [];
    let found = this.marks.get(row);
    if (!found) {
      found = wordMarks(this.shown.left[row.left]!, this.shown.right[row.right]!);
      this.marks.set(row, found);
    }
    return found[side === "left" ? 0 : 1].map(([from, to]) => ({ from, to, style: `word-${side}` }));
  }
}

function isChange(row: Row | undefined): boolean {
  return row !== undefined && row.op !== "equal" && row.op !== "fold" && row.op !== "quiet";
}

function styleOf({ row, side }: Line): string {
  if (row.op === "equal") return "";
  if (row.op === "fold" || row.op === "quiet") return `row-${row.op}`;
  if (row.op === "changed") return side === "left" ? "row-removed" : "row-added";
  const missing = side === "left" ? row.left < 0 : side === "right" ? row.right < 0 : false;
  if (missing) return "row-none";
  return `row-${row.op}`;
}

function numberOf(line: Line | undefined, side: "left" | "right", numbers: ArrayLike<number>): string {
  if (!line || line.row.op === "fold" || (line.side !== "both" && line.side !== side)) return "";
  const index = side === "left" ? line.row.left : line.row.right;
  return index < 0 ? "" : String(numbers[index] ?? "");
}

function signOf(line: Line | undefined): string {
  if (!line) return " ";
  if (line.row.op === "changed") return line.side === "left" ? "−" : "+";
  return SIGNS[line.row.op] ?? " ";
}

/** Makes two elements scroll as one. */
function together(one: HTMLElement, other: HTMLElement): void {
  const follow = (from: HTMLElement, to: HTMLElement) =>
    from.addEventListener("scroll", () => {
      if (Math.abs(to.scrollTop - from.scrollTop) > 1) to.scrollTop = from.scrollTop;
      if (Math.abs(to.scrollLeft - from.scrollLeft) > 1) to.scrollLeft = from.scrollLeft;
    });
  follow(one, other);
  follow(other, one);
}
