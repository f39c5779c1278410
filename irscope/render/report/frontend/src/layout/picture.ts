// Draws a layout's map on a canvas; a thread that is pointed at lights up with all it holds.
import { hideTip, showTip } from "../code/tip";
import { h } from "../dom";
import type { LayoutMap, Owner } from "./map";

export type ColorBy = "warp" | "lane" | "register" | "bank";

const LARGEST_CELL = 46;
const SMALLEST_CELL = 3;
const BANKS = 32;

export class Picture {
  readonly element = h("div", { class: "picture" });
  private readonly canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "layout" });
  private map: LayoutMap | undefined;
  private colorBy: ColorBy = "warp";
  private bits = 16;
  private cell = 10;
  private chosen: Owner | undefined;
  private kept = false;

  constructor() {
    this.element.append(this.canvas);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => {
      hideTip();
      if (!this.kept) this.choose(undefined);
    });
    this.canvas.addEventListener("click", () => (this.kept = !this.kept));
  }

  show(map: LayoutMap, colorBy: ColorBy, bits: number, width: number): void {
    this.map = map;
    this.colorBy = colorBy;
    this.bits = bits;
    this.chosen = undefined;
    this.kept = false;
    this.cell = Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, Math.floor(width / map.columns)));
    const scale = devicePixelRatio || 1;
    this.canvas.width = map.columns * this.cell * scale;
    this.canvas.height = map.rows * this.cell * scale;
    this.canvas.style.width = `${map.columns * this.cell}px`;
    this.canvas.style.height = `${map.rows * this.cell}px`;
    this.draw();
  }

  private draw(): void {
    const context = this.canvas.getContext("2d");
    const map = this.map;
    if (!context || !map) return;
    const scale = devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.font = `${Math.floor(this.cell / 3.6)}px monospace`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    map.cells.forEach((owners, at) => {
      const [x, y] = [(at % map.columns) * this.cell, Math.floor(at / map.columns) * this.cell];
      const owner = owners[0];
      if (!owner) return;
      const lit = this.chosen && owners.some((one) => this.sameThread(one));
      context.fillStyle = lit ? "#ffd33d" : `hsl(${this.hue(owner)} 55% ${this.chosen ? 84 : 72}%)`;
      context.fillRect(x, y, this.cell - (this.cell > 6 ? 1 : 0), this.cell - (this.cell > 6 ? 1 : 0));
      if (this.cell >= 24) {
        context.fillStyle = "#1f2328";
        context.fillText(textOf(owner), x + this.cell / 2, y + this.cell / 2);
      }
    });
  }

  private hue(owner: Owner): number {
    const sizes = this.map!.sizes;
    if (owner.offset >= 0) return (this.bankOf(owner) * 360) / BANKS;
    const [value, size] =
      this.colorBy === "lane"
        ? [owner.lane, sizes["lane"]]
        : this.colorBy === "register"
          ? [owner.register, sizes["register"]]
          : [owner.warp + owner.block * 3, sizes["warp"]];
    return (value * 360) / Math.max(1, size ?? 1);
  }

  private bankOf(owner: Owner): number {
    return Math.floor((owner.offset * this.bits) / 32) % BANKS;
  }

  private sameThread(one: Owner): boolean {
    const other = this.chosen!;
    if (one.offset >= 0) return this.bankOf(one) === this.bankOf(other);
    return one.lane === other.lane && one.warp === other.warp && one.block === other.block;
  }

  private choose(owner: Owner | undefined): void {
    if (owner === this.chosen) return;
    this.chosen = owner;
    this.draw();
  }

  private point(event: MouseEvent): void {
    const map = this.map;
    if (!map) return;
    const column = Math.floor(event.offsetX / this.cell);
    const row = Math.floor(event.offsetY / this.cell);
    const owners = map.cells[row * map.columns + column] ?? [];
    if (!owners[0]) return;
    if (!this.kept) this.choose(owners[0]);
    const place = map.shape.length === 1 ? `[${row * map.columns + column}]` : `[${row}, ${column}]`;
    showTip(
      event,
      h("p", null, h("b", null, place)),
      ...owners.slice(0, 8).map((owner) => h("p", null, this.words(owner))),
      owners.length > 8 ? h("p", null, `and ${owners.length - 8} more`) : null,
    );
  }

  private words(owner: Owner): string {
    if (owner.offset >= 0) return `offset ${owner.offset}, bank ${this.bankOf(owner)}`;
    const block = (this.map?.sizes["block"] ?? 1) > 1 ? `, CTA ${owner.block}` : "";
    return `warp ${owner.warp}, lane ${owner.lane}, register ${owner.register}${block}`;
  }
}

function textOf(owner: Owner): string {
  return owner.offset >= 0 ? String(owner.offset) : `T${owner.lane}:${owner.register}`;
}
