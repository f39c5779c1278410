// Layouts: each one of the TTGIR with its thread map, next to another one if wanted, and what layouts cost.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { command, copyButton, toast } from "../copy";
import type { Cost } from "../data/memory";
import type { Capture, LayoutRow } from "../data/model";
import { button, fill, h, select, table } from "../dom";
import { LayoutMap } from "../layout/map";
import { forgotten, LayoutView, OF_ONE_LAYOUT } from "../layout/view";
import { state } from "../state";
import { onTheme } from "../theme";
import { callers, operationLink, pythonLink } from "./sources";

const MOST_CONVERSIONS = 60;

export class LayoutsTab implements Tab {
  readonly name = "layouts";
  readonly title = "Layouts";
  readonly element = h("section", { class: "layouts", "aria-label": "Layouts" });

  private view: LayoutView | undefined;
  private shown = "";
  private readonly maps = new WeakMap<LayoutRow, { map: LayoutMap | undefined }>();

  constructor(private readonly app: App) {
    addEventListener("resize", () => this.view?.redraw());
    onTheme(() => this.view?.redraw());
  }

  enter(): void {
    this.app.keys.forTab("Layouts", [
      { keys: ["j", "ArrowDown"], text: "The next layout", run: () => this.step(1) },
      { keys: ["k", "ArrowUp"], text: "The layout before", run: () => this.step(-1) },
      { keys: ["o"], text: "The next colouring", run: () => this.recolor() },
      { keys: ["b"], text: "The next bit", run: () => this.view?.stepBit(1) },
      { keys: ["B"], text: "The bit before", run: () => this.view?.stepBit(-1) },
      { keys: ["Escape"], text: "Let go of what was chosen", run: () => state.set(forgotten(), true) },
    ]);
    this.view?.redraw();
  }

  update(changed: Set<string>): void {
    const capture = currentCapture(this.app);
    const { rows, conversions, between } = this.app.data.layouts(captureNumber(this.app));
    if (!rows.length) {
      this.shown = "";
      fill(
        this.element,
        h("p", { class: "remark" }, "No layout was recorded: the compile did not reach TTGIR, or its types have none."),
      );
      return;
    }
    const number = this.number(rows);
    const versus = state.number("versus") - 1;
    const key = `${captureNumber(this.app)} ${number} ${versus}`;
    if (key === this.shown && ![...changed].some((name) => name === "color")) {
      // Of what is chosen within a layout nothing but the pictures changes.
      if (!changed.size || OF_ONE_LAYOUT.some((name) => changed.has(name))) this.view?.redraw();
      return;
    }
    this.shown = key;
    const chosen = rows[number]!;
    const map = this.map(chosen);
    const other = this.others(rows, chosen).find(([at]) => at === versus)?.[1];
    this.view = map && new LayoutView(map, other, between?.[`${number} ${versus}`]);
    fill(
      this.element,
      h(
        "aside",
        { class: "layout-list", "aria-label": "All layouts" },
        rows.map((row, at) => this.item(row, at, at === number)),
      ),
      h(
        "div",
        { class: "layout-body" },
        this.tools(capture, rows, chosen, map),
        this.about(chosen),
        this.view?.element ??
          h("p", { class: "remark" }, `No picture: ${chosen.reason || "it has too many places to draw"}.`),
        uses(chosen),
        conversions.length ? conversionTable(capture, conversions) : null,
      ),
    );
    this.element.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest" });
    this.view?.redraw();
  }

  private map(row: LayoutRow): LayoutMap | undefined {
    let found = this.maps.get(row);
    if (!found) this.maps.set(row, (found = { map: LayoutMap.of(row) }));
    return found.map;
  }

  /** The layouts that one can be compared with: those of its shape. */
  private others(rows: LayoutRow[], chosen: LayoutRow): [number, LayoutMap][] {
    const own = this.map(chosen);
    return rows.flatMap((row, at): [number, LayoutMap][] => {
      if (row === chosen || row.shape?.join() !== chosen.shape?.join()) return [];
      const map = this.map(row);
      return !map || !own || map.kind === "column" || own.kind === "column" ? [] : [[at, map]];
    });
  }

  private number(rows: LayoutRow[]): number {
    const named = state.text("layout");
    const at = /^\d+$/.test(named) ? Number(named) - 1 : rows.findIndex((row) => row.alias === named);
    return at >= 0 && at < rows.length ? at : 0;
  }

  private step(by: number): void {
    const { rows } = this.app.data.layouts(captureNumber(this.app));
    const next = this.number(rows) + by;
    if (next >= 0 && next < rows.length) state.set({ ...forgotten(), layout: next + 1, versus: null });
  }

  private recolor(): void {
    const { rows } = this.app.data.layouts(captureNumber(this.app));
    const map = rows.length ? this.map(rows[this.number(rows)]!) : undefined;
    if (!map) return;
    const at = map.colorings.indexOf(map.coloring(state.text("color")));
    state.set({ color: map.colorings[(at + 1) % map.colorings.length]! }, true);
  }

  private item(row: LayoutRow, at: number, chosen: boolean): HTMLElement {
    const text = `${String(row["name"] ?? row.alias ?? "")} ${String(row["shapeText"] ?? "")} ${(row.elements ?? []).join(" ")}`;
    return button(text, String(row.encoding ?? ""), () => state.set({ ...forgotten(), layout: at + 1, versus: null }), {
      class: "item-button",
      "aria-pressed": String(chosen),
    });
  }

  private tools(capture: Capture, rows: LayoutRow[], chosen: LayoutRow, map: LayoutMap | undefined): HTMLElement {
    const others = this.others(rows, chosen).map(([at, other]): [string, string] => [
      String(at + 1),
      `against ${other.name}`,
    ]);
    return h(
      "div",
      { class: "bar-of-tools" },
      map
        ? select(
            "colour",
            map.colorings.map((one): [string, string] => [one, `colour: ${one}`]),
            map.coloring(state.text("color")),
            (value) => state.set({ color: value }, true),
          )
        : null,
      others.length
        ? select("second layout", [["", "one layout"], ...others], state.text("versus"), (value) =>
            state.set({ versus: value || null }),
          )
        : null,
      h("span", { class: "room" }),
      map ? button("PNG", "Save the picture of the tensor", () => this.savePicture(chosen)) : null,
      copyButton("encoding", "Copy the encoding", () => String(chosen.encoding ?? "")),
      copyButton("command", "Copy the command that shows it", () =>
        command("layout", capture.id, "--layout", String(chosen["name"] ?? "")),
      ),
    );
  }

  private savePicture(row: LayoutRow): void {
    const canvas = this.view?.canvas;
    if (!canvas) return;
    h("a", { href: canvas.toDataURL("image/png"), download: `${String(row["name"] ?? "layout")}.png` }).click();
    toast("Saved the picture of the tensor.");
  }

  private about(row: LayoutRow): HTMLElement {
    const facts = ((row["facts"] as string[] | undefined) ?? []).map((fact) => h("li", null, fact));
    return h(
      "div",
      { class: "about-layout" },
      h("h1", null, String(row["title"] ?? ""), h("span", { class: "faint" }, ` ${String(row["parameters"] ?? "")}`)),
      h("code", { class: "argument" }, String(row.encoding ?? "")),
      facts.length ? h("ul", { class: "faint" }, facts) : null,
    );
  }
}

function uses(row: LayoutRow): HTMLElement | null {
  const rows = (row.operations ?? [])
    .slice(0, 40)
    .map((use) => [
      use.name ?? "",
      (use.lines ?? []).slice(0, 12).map((line) => [operationLink(line, "", String(line)), " "]),
      h(
        "span",
        { title: (use.chains ?? []).map(callers).join("\n") },
        [use.python ?? []].flat().slice(0, 4).join(", "),
      ),
    ]);
  return rows.length
    ? h(
        "details",
        null,
        h("summary", null, `${rows.length} kinds of operations use it`),
        table(["operation", "lines of the TTGIR", "Python"], rows),
      )
    : null;
}

function conversionTable(capture: Capture, costs: Cost[]): HTMLElement {
  const rows = costs
    .slice(0, MOST_CONVERSIONS)
    .map((cost) => [
      operationLink(cost.line),
      cost.operation,
      pythonLink(capture, cost.place, cost.chain),
      cost.layouts.join(" → "),
      [cost.summary, cost.hint ? h("span", { class: "faint" }, ` ${cost.hint}`) : null],
    ]);
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Conversions, the worst first"),
    table(["line", "operation", "Python", "layouts", "cost"], rows),
  );
}
