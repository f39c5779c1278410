// A grid of cells on a canvas, with axes, labels where there is room, and frames.
import { h } from "../dom";
import { inkOn, type Rgb } from "./colors";

const CHARACTER = 6.1;
const MARGIN = 44;
const TOP = 20;
const LARGEST_CELL = 44;
const LABELLED = 30;
const MOST_PIXELS = 16000;

/** What a grid shows; rows and columns are 0-based. */
export interface Cells {
  rows: number;
  columns: number;
  rowName(row: number): string;
  /** A number that grows by one where a cell goes on in its neighbour. */
  order(row: number, column: number): number;
  /** "padding" is hatched, null is empty. */
  color(row: number, column: number): Rgb | "padding" | null;
  /** Whether a label begins here. */
  starts(row: number, column: number): boolean;
  label(row: number, column: number, length: number): string;
  marked(row: number, column: number): boolean;
  framed?(row: number, column: number): boolean;
}

export interface Marks {
  /** Whether anything is marked: what is not is faded. */
  any: boolean;
  /** Whether marked cells get a frame. */
  framed: boolean;
}

export class Grid {
  readonly canvas = h("canvas", { tabindex: "0" });
  readonly element: HTMLElement;
  private cells: Cells | undefined;
  private cell = 0;
  private high = 0;

  constructor(name: string) {
    this.canvas.className = name;
    this.element = h("div", { class: "grid-holder" }, this.canvas);
  }

  /** Pixels of a cell for which labels fit; 0 where none would. */
  static cellFor(cells: Cells, longest: number): number {
    let least = Infinity;
    for (let column = 0; column < cells.columns;) {
      const length = runAt(cells, 0, column);
      least = Math.min(least, length);
      column += length;
    }
    const cell = Math.ceil((longest * CHARACTER + 6) / least);
    return cell * cells.columns * (devicePixelRatio || 1) < MOST_PIXELS ? cell : 0;
  }

  /** (row, column) that an event points at. */
  at(event: MouseEvent): [number, number] | undefined {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - MARGIN) / this.cell);
    const row = Math.floor((event.clientY - box.top - TOP) / this.high);
    const { rows, columns } = this.cells ?? { rows: 0, columns: 0 };
    return row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : undefined;
  }

  draw(cells: Cells, marks: Marks, least: number, label: string): void {
    this.cells = cells;
    const ratio = devicePixelRatio || 1;
    const room = Math.max(this.element.clientWidth - MARGIN - 4, 200);
    this.cell = Math.max(Math.min(Math.floor(room / cells.columns), LARGEST_CELL), 4, least);
    this.high = this.cell >= LABELLED ? 24 : least ? 20 : Math.max(Math.min(this.cell, 20), 5);
    const [width, height] = [MARGIN + cells.columns * this.cell + 2, TOP + cells.rows * this.high + 2];
    const { canvas } = this;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
    canvas.dataset["cell"] = `${this.cell} ${this.high} ${MARGIN} ${TOP}`;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const draw = canvas.getContext("2d");
    if (!draw) return;
    draw.scale(ratio, ratio);
    draw.font = "10px ui-monospace, 'DejaVu Sans Mono', monospace";
    draw.textBaseline = "middle";
    this.drawCells(draw, cells, marks, least);
    this.drawAxes(draw, cells);
  }

  private drawCells(draw: CanvasRenderingContext2D, cells: Cells, marks: Marks, least: number): void {
    const { cell, high } = this;
    const [faint, ink] = [styleOf("--faint"), styleOf("--ink")];
    const texts: [string, string, number, number, number][] = [];
    const frames: [number, number, number, number][] = [];
    for (let row = 0; row < cells.rows; row++) {
      for (let column = 0; column < cells.columns; column++) {
        const color = cells.color(row, column);
        if (!color) continue;
        const [x, y] = [MARGIN + column * cell, TOP + row * high];
        if (color === "padding") {
          hatch(draw, x, y, cell, high, faint);
          continue;
        }
        const isMarked = marks.any && cells.marked(row, column);
        const faded = marks.any && !isMarked;
        draw.globalAlpha = faded ? 0.35 : 1;
        draw.fillStyle = `rgb(${color.join(",")})`;
        // A gap where the next cell, to the right or below, does not go on where this one ends.
        const order = cells.order(row, column);
        const right = column + 1 < cells.columns && !cells.starts(row, column + 1);
        const below = row + 1 < cells.rows && cells.order(row + 1, column) === order + 1 && cell < LABELLED;
        draw.fillRect(x, y, cell - (right ? 0 : 1), high - (below ? 0 : 1));
        if ((cell >= LABELLED || least) && cells.starts(row, column)) {
          const length = runAt(cells, row, column);
          const text = cells.label(row, column, length);
          const width = cell * length;
          if (text.length * CHARACTER < 1.5 * width)
            texts.push([text, faded ? faint : inkOn(color), x + width / 2, y + high / 2, width - 3]);
        }
        draw.globalAlpha = 1;
        if (isMarked && marks.framed) {
          draw.strokeStyle = ink;
          draw.lineWidth = 1.5;
          draw.strokeRect(x - 1, y - 1, cell + 1, high + 1);
        }
        const begins = column === 0 || cells.starts(row, column) || !cells.framed?.(row, column - 1);
        if (cells.framed?.(row, column) && begins)
          frames.push([x + 1.5, y + 1.5, cell * runAt(cells, row, column) - 4, high - 4]);
      }
    }
    // In two colours: one of them stands out from any filling.
    for (const [color, width] of [
      [styleOf("--paper"), 3.5],
      [ink, 1.5],
    ] as const) {
      draw.strokeStyle = color;
      draw.lineWidth = width;
      for (const frame of frames) draw.strokeRect(...frame);
    }
    draw.textAlign = "center";
    for (const [text, color, x, y, width] of texts) {
      draw.fillStyle = color;
      draw.fillText(text, x, y, width);
    }
  }

  private drawAxes(draw: CanvasRenderingContext2D, cells: Cells): void {
    const step = (least: number) => Math.max(2 ** Math.ceil(Math.log2(least)), 1);
    draw.fillStyle = styleOf("--faint");
    draw.textAlign = "right";
    for (let row = 0; row < cells.rows; row += step(14 / this.high))
      draw.fillText(cells.rowName(row), MARGIN - 5, TOP + row * this.high + this.high / 2);
    draw.textAlign = "left";
    for (let column = 0; column < cells.columns; column += step(26 / this.cell))
      draw.fillText(String(column), MARGIN + column * this.cell + 1, TOP / 2);
  }
}

/** How many cells to the right, from one on, share its label. */
function runAt(cells: Cells, row: number, column: number): number {
  let end = column + 1;
  while (end < cells.columns && !cells.starts(row, end)) end++;
  return end - column;
}

function hatch(
  draw: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  color: string,
): void {
  draw.save();
  draw.beginPath();
  draw.rect(x, y, width, height);
  draw.clip();
  draw.strokeStyle = color;
  draw.lineWidth = 1;
  draw.beginPath();
  for (let at = x - height; at < x + width; at += 5) {
    draw.moveTo(at, y + height);
    draw.lineTo(at + height, y);
  }
  draw.stroke();
  draw.restore();
}

function styleOf(name: string): string {
  // A colour of two themes is only one where it is used.
  const probe = h("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

/** Whether the page is dark. */
export function isDark(): boolean {
  const named = document.documentElement.dataset["theme"];
  return named ? named === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
