// One layout to explore, or two beside each other: its tensor, the hardware that holds it, and the bits between the two.
import type { Between } from "../data/model";
import { button, fill, h } from "../dom";
import { state } from "../state";
import { bitTables, markBit } from "./bits";
import { fillOf } from "./colors";
import { Grid, isDark, type Cells } from "./grid";
import { threadOf, type Coloring, type LayoutMap, type Parts } from "./map";

const MOST_OWNERS = 64;
const MOST_ELEMENTS = 128;

/** What is meant: an element, or all places with some parts. */
type Selection = { element: number } | Parts;

/** The keys of the state that are of one layout. */
export const OF_ONE_LAYOUT = ["element", "register", "lane", "warp", "block", "offset", "row", "column", "bit", "lead"];

export const forgotten = (): Record<string, null> => Object.fromEntries(OF_ONE_LAYOUT.map((name) => [name, null]));

interface Difference {
  elements: Set<number>;
  /** Whether more than half differ: then the others are framed. */
  most: boolean;
  text: string;
}

export class LayoutView {
  readonly element = h("div", { class: "layout-view" });
  private readonly tensor = new Grid("tensor");
  private readonly second = new Grid("second");
  private readonly hardware = new Grid("hardware");
  private readonly details = h("pre", { class: "details", role: "status", "aria-live": "polite" });
  private readonly remark = h("p", { class: "remark comparison" });
  private readonly step = h("span", { class: "step" });
  private pointed: Selection | undefined;
  private difference: Difference | undefined;
  private waiting = 0;

  constructor(
    private readonly map: LayoutMap,
    private readonly other: LayoutMap | undefined,
    private readonly between: Between | undefined,
  ) {
    this.difference = this.compared();
    this.build();
    for (const grid of [this.tensor, this.second, this.hardware]) this.listen(grid);
    // The two pictures of a comparison show the same part.
    const sides = [this.tensor.element, this.second.element] as const;
    for (const [from, to] of [sides, [sides[1], sides[0]] as const]) {
      from.addEventListener("scroll", () => {
        to.scrollLeft = from.scrollLeft;
        to.scrollTop = from.scrollTop;
      });
    }
  }

  /** Draws again, once before the next frame. */
  redraw(): void {
    cancelAnimationFrame(this.waiting);
    this.waiting = requestAnimationFrame(() => this.draw());
  }

  stepBit(by: number): void {
    const count = this.map.bits.length;
    const bit = this.bit;
    const next = bit < 0 ? (by > 0 ? 0 : count - 1) : (bit + by + count) % count;
    state.set({ ...forgotten(), lead: state.text("lead"), bit: next + 1 }, true);
  }

  get canvas(): HTMLCanvasElement {
    return this.tensor.canvas;
  }

  private get bit(): number {
    const bit = state.number("bit") - 1;
    return bit >= 0 && bit < this.map.bits.length ? bit : -1;
  }

  private get coloring(): string {
    return state.text("color");
  }

  private get lead(): number[] {
    const named = state.text("lead").split(",").map(Number);
    return this.map.shape.slice(0, -2).map((size, at) => Math.min(Math.max(Math.trunc(named[at] || 0), 0), size - 1));
  }

  /** What was clicked or chosen, as the state has it. */
  private get kept(): Selection | undefined {
    const { map } = this;
    const place = state.text("element").split(",").map(Number);
    const inside = (part: number, at: number) => Number.isInteger(part) && part >= 0 && part < map.shape[at]!;
    if (state.text("element") && place.length === map.shape.length && place.every(inside))
      return { element: map.elementAt(place) };
    const parts: Parts = {};
    for (const { name, size } of map.inputs) {
      const value = state.number(name, -1);
      if (value >= 0 && value < size) parts[name] = value;
    }
    return Object.keys(parts).length ? parts : undefined;
  }

  private keep(selection: Selection | undefined): void {
    const chosen: Record<string, string | number | null> = { ...forgotten(), lead: state.text("lead") };
    if (selection && "element" in selection) chosen["element"] = this.map.coordinates(selection["element"]!).join(",");
    else for (const [name, value] of Object.entries(selection ?? {})) chosen[name] = String(value);
    state.set(chosen, true);
  }

  private build(): void {
    const { map, other } = this;
    const kinds = {
      register: "threads (rows) × registers (columns)",
      offset: `shared memory, a line of ${map.banks} banks a row`,
      column: "tensor memory, lanes × columns",
    };
    const part = (title: string, grid: Grid) => h("figure", null, h("figcaption", null, title), grid.element);
    const lead = map.shape.slice(0, -2).map((size, at) => {
      const set = (value: number) =>
        state.set({ lead: this.lead.map((one, index) => (index === at ? value : one)).join(",") }, true);
      return number(map.dimensions[at] ?? "", size, this.lead[at]!, (value) => set(value ?? 0));
    });
    const pickers = map.inputs
      .filter((input) => input.size > 1)
      .map((input) => {
        const kept = this.kept;
        const value = kept && !("element" in kept) ? kept[input.name] : undefined;
        return number(input.name, input.size, value, (value) => {
          const kept = this.kept;
          const parts: Record<string, number | undefined> = { ...(kept && !("element" in kept) ? kept : {}) };
          parts[input.name] = value;
          const named = Object.entries(parts).filter((one): one is [string, number] => one[1] !== undefined);
          this.keep(named.length ? Object.fromEntries(named) : undefined);
        });
      });
    fill(
      this.element,
      this.remark,
      lead.length ? h("div", { class: "bar-of-tools" }, lead) : null,
      h(
        "div",
        { class: other ? "grids pair" : "grids" },
        part(`tensor, ${map.shape.join(" × ")} elements${other ? ` in ${map.name}` : ""}`, this.tensor),
        other ? part(`in ${other.name}`, this.second) : null,
        part(kinds[map.kind], this.hardware),
        h(
          "div",
          { class: "chosen-place" },
          h("h2", null, "Selected"),
          this.details,
          pickers.length ? [h("h2", null, "Choose"), h("div", { class: "pickers" }, pickers)] : null,
        ),
      ),
      h(
        "section",
        { class: "bits", "aria-label": "Bits" },
        h("h2", null, "Bits"),
        h(
          "p",
          { class: "bar-of-tools" },
          button("previous bit", "The bit before (b backwards: B)", () => this.stepBit(-1)),
          button("next bit", "The next bit (b)", () => this.stepBit(1)),
          button("no bit", "None", () => state.set({ bit: null }, true)),
          this.step,
        ),
        bitTables(map, (bit) => state.set({ ...forgotten(), lead: state.text("lead"), bit: bit + 1 }, true)),
        h(
          "p",
          { class: "faint" },
          "The element is the exclusive or of the vectors of the bits that are set. In the matrix over GF(2) a column " +
            "is an input bit, a row a bit of the element's row-major index, the highest first.",
        ),
      ),
    );
  }

  private listen(grid: Grid): void {
    grid.canvas.addEventListener("mousemove", (event) => {
      if (this.kept) return;
      this.pointed = this.meant(grid, event);
      this.redraw();
    });
    grid.canvas.addEventListener("mouseleave", () => {
      this.pointed = undefined;
      this.redraw();
    });
    grid.canvas.addEventListener("click", (event) => this.keep(this.kept ? undefined : this.meant(grid, event)));
  }

  private meant(grid: Grid, event: MouseEvent): Selection | undefined {
    const cell = grid.at(event);
    if (!cell) return undefined;
    const { map } = this;
    if (grid !== this.hardware) {
      const element = map.plane(this.lead).element(...cell);
      return element < map.size ? { element } : undefined;
    }
    const place = map.hardware().place(...cell) ?? -1;
    if (place < 0) return undefined;
    // A single register of one thread; with Shift its whole thread, with Alt its whole warp.
    const parts = map.parts(place);
    if (map.kind === "register" && event.altKey) return { warp: parts["warp"]!, block: parts["block"]! };
    if (map.kind === "register" && event.shiftKey)
      return { lane: parts["lane"]!, warp: parts["warp"]!, block: parts["block"]! };
    return parts;
  }

  /** The elements and places that are meant, by a selection or else by the chosen bit. */
  private marked(selection: Selection | undefined): { elements: Set<number>; places: Set<number> } {
    const { map, bit } = this;
    const found = { elements: new Set<number>(), places: new Set<number>() };
    if (selection && "element" in selection) {
      found.elements.add(selection["element"]!);
      for (const place of map.owners[selection["element"]!] ?? []) found.places.add(place);
      return found;
    }
    if (!selection && bit < 0) return found;
    map.places.forEach((element, place) => {
      const parts = selection ? map.parts(place) : {};
      const is = selection
        ? Object.entries(selection).every(([name, value]) => parts[name] === value)
        : Math.floor(place / 2 ** bit) % 2;
      if (!is) return;
      found.places.add(place);
      found.elements.add(element);
    });
    return found;
  }

  /** The elements that differ, or of an access those of its first lanes; and what a frame means. */
  private compared(): Difference | undefined {
    const { map, other } = this;
    if (!other) return undefined;
    if ((map.kind === "register") !== (other.kind === "register")) {
      const request = this.between?.request ?? [];
      const text = request.length ? "framed: what the first lanes of warp 0 access together" : "";
      return { elements: new Set(request), most: false, text };
    }
    const elements = new Set<number>();
    const inRegisters = map.kind === "register";
    for (let element = 0; element < map.size; element++) {
      const [own, others] = [map.owners[element] ?? [], other.owners[element] ?? []];
      if (inRegisters) {
        const there = new Set(others.map((place) => threadOf(other.parts(place))));
        if (!own.some((place) => there.has(threadOf(map.parts(place))))) elements.add(element);
      } else if (!own.length || !others.length || map.words(own[0]!) !== other.words(others[0]!)) elements.add(element);
    }
    // The fewer are framed: frames around nearly everything say nothing.
    const most = 2 * elements.size > map.size;
    const what = inRegisters ? "have another thread" : "lie at another place";
    const same = inRegisters ? "the same thread holds it" : "it lies at the same place";
    const differs = inRegisters ? "another thread holds it" : "it lies elsewhere";
    const text = `${elements.size} of ${map.size} elements ${what} in ${other.name}; framed: ${most ? same : differs} there`;
    return { elements, most, text };
  }

  private draw(): void {
    if (!this.element.isConnected) return;
    const { map, other, difference } = this;
    const selection = this.kept ?? this.pointed;
    const { elements, places } = this.marked(selection);
    const marks = { any: selection !== undefined || this.bit >= 0, framed: selection !== undefined };
    const framed =
      difference && (difference.elements.size || difference.most)
        ? (element: number) => difference.elements.has(element) !== difference.most
        : undefined;
    const sides = [{ grid: this.tensor, of: map }, ...(other ? [{ grid: this.second, of: other }] : [])].map(
      ({ grid, of }) => ({ grid, of, cells: this.tensorCells(of, elements, framed) }),
    );
    const least = Math.max(
      ...sides.map(({ of, cells }) => {
        const coloring = of.coloring(this.coloring);
        return Grid.cellFor(cells, of.label(of.places.length - 1, of.kind === "register" ? 2 : 1, coloring).length);
      }),
    );
    for (const { grid, of, cells } of sides) grid.draw(cells, marks, least, `the tensor of ${of.name}`);
    this.hardware.draw(this.hardwareCells(places), marks, 0, `what holds the tensor of ${map.name}`);
    fill(this.remark, [...(this.between?.facts ?? []), difference?.text ?? ""].filter(Boolean).join("\n"));
    this.remark.hidden = !this.remark.textContent;
    fill(this.details, this.said(selection));
    const bit = map.bits[this.bit];
    fill(
      this.step,
      bit ? `${bit.input} bit ${bit.bit} (value ${2 ** bit.bit}) adds [${bit.vector.join(", ")}]` : "no bit chosen",
    );
    markBit(this.element, this.bit);
  }

  private tensorCells(of: LayoutMap, marked: Set<number>, framed: ((element: number) => boolean) | undefined): Cells {
    const plane = of.plane(this.lead);
    const coloring = of.coloring(this.coloring);
    const dark = isDark();
    const owner = (row: number, column: number) => of.owners[plane.element(row, column)]?.[0] ?? -2;
    const isFramed = framed && ((row: number, column: number) => framed(plane.element(row, column)));
    return {
      rows: plane.rows,
      columns: plane.columns,
      rowName: (row) => String(of.shape.length > 1 ? row : row * plane.columns),
      order: owner,
      color: (row, column) => this.colorAt(of, owner(row, column), coloring, dark),
      starts: (row, column) =>
        column === 0 ||
        !of.joined(owner(row, column - 1), owner(row, column)) ||
        (isFramed !== undefined && isFramed(row, column - 1) !== isFramed(row, column)),
      label: (row, column, length) => of.label(owner(row, column), length, coloring),
      marked: (row, column) => marked.has(plane.element(row, column)),
      ...(isFramed ? { framed: isFramed } : {}),
    };
  }

  private hardwareCells(marked: Set<number>): Cells {
    const { map } = this;
    const hardware = map.hardware();
    const coloring = map.coloring(this.coloring);
    const dark = isDark();
    const element = (row: number, column: number) => map.places[hardware.place(row, column) ?? -1] ?? -2;
    return {
      rows: hardware.rows,
      columns: hardware.columns,
      rowName: (row) => {
        if (map.kind === "offset") return String((row * hardware.columns * map.elementBits) / 8);
        const parts = map.parts(hardware.place(row, 0) ?? 0);
        if (map.kind === "column") return String(parts["row"]);
        return `${parts["block"] ? `C${parts["block"]}` : ""}w${parts["warp"]}t${parts["lane"]}`;
      },
      order: element,
      color: (row, column) => {
        const place = hardware.place(row, column);
        return place === -1 ? "padding" : this.colorAt(map, place ?? -2, coloring, dark);
      },
      starts: () => true,
      label: (row, column) => map.coordinates(element(row, column)).join(","),
      marked: (row, column) => marked.has(hardware.place(row, column) ?? -1),
    };
  }

  private colorAt(of: LayoutMap, place: number, coloring: Coloring, dark: boolean) {
    return place < 0 ? null : fillOf(...of.colorOf(place, coloring), dark);
  }

  private said(selection: Selection | undefined): string {
    const { map, other } = this;
    if (!selection) return "Point at a cell of a picture, or choose below. A click keeps it.";
    if (!("element" in selection)) return this.saidOfPlaces(selection);
    const element = selection["element"]!;
    const places = map.owners[element] ?? [];
    const lines = [
      `element (${map.coordinates(element).join(", ")})`,
      places.length ? `held ${places.length === 1 ? "once" : `${places.length} times`}:` : "held nowhere",
      ...places.slice(0, MOST_OWNERS).map((place) => `  ${map.words(place)}`),
    ];
    if (places.length > MOST_OWNERS) lines.push(`  … ${places.length - MOST_OWNERS} more`);
    if (places.length) lines.push("", map.sum(places[0]!));
    if (other) {
      const moves = map.kind === other.kind && map.kind === "register" && this.difference?.elements.has(element);
      lines.push("", `in ${other.name}${moves ? " (moves)" : ""}:`);
      lines.push(...(other.owners[element] ?? []).slice(0, MOST_OWNERS).map((place) => `  ${other.words(place)}`));
    }
    return lines.join("\n");
  }

  private saidOfPlaces(parts: Parts): string {
    const { map } = this;
    const { elements, places } = this.marked(parts);
    const head = Object.entries(parts).map(([name, value]) => `${name} ${value}`);
    const rows = [...places].slice(0, MOST_ELEMENTS).map((place) => {
      return `  ${map.words(place, parts)} → (${map.coordinates(map.places[place]!).join(", ")})`;
    });
    const lines = [head.join(", "), `${elements.size} elements:`, ...rows];
    if (places.size > MOST_ELEMENTS) lines.push(`  … ${places.size - MOST_ELEMENTS} more`);
    const [only] = places;
    if (places.size === 1) lines.push("", map.sum(only!));
    return lines.join("\n");
  }
}

/** A labelled field of a number below `size`. */
function number(
  label: string,
  size: number,
  value: number | undefined,
  change: (value: number | undefined) => void,
): HTMLElement {
  const field = h("input", {
    type: "number",
    min: 0,
    max: size - 1,
    placeholder: `0–${size - 1}`,
    value: value ?? "",
    name: label,
  });
  field.addEventListener("input", () => {
    const typed = Number(field.value);
    change(field.value !== "" && typed >= 0 && typed < size ? typed : undefined);
  });
  return h("label", null, `${label} `, field);
}
