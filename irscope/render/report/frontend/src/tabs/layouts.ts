// Layouts: each one of the TTGIR with its thread map, next to another one if wanted, and what layouts cost.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { command, copyButton } from "../copy";
import type { Cost } from "../data/memory";
import type { Capture, LayoutRow } from "../data/model";
import { button, fill, h, select, table } from "../dom";
import { mapOf } from "../layout/map";
import { Picture, type ColorBy } from "../layout/picture";
import { state } from "../state";
import { callers, operationLink, pythonLink } from "./sources";

const MOST_CONVERSIONS = 60;

const COLORS: [ColorBy, string][] = [
  ["warp", "colour: warp"],
  ["lane", "colour: lane"],
  ["register", "colour: register"],
];

export class LayoutsTab implements Tab {
  readonly name = "layouts";
  readonly title = "Layouts";
  readonly element = h("section", { class: "layouts", "aria-label": "Layouts" });

  constructor(private readonly app: App) {}

  enter(): void {
    this.app.keys.forTab("Layouts", [
      { keys: ["j", "ArrowDown"], text: "The next layout", run: () => this.step(1) },
      { keys: ["k", "ArrowUp"], text: "The layout before", run: () => this.step(-1) },
      { keys: ["o"], text: "Colour by warp, lane or register", run: () => this.recolor() },
    ]);
  }

  update(): void {
    const capture = currentCapture(this.app);
    const { rows, conversions } = this.app.data.layouts(captureNumber(this.app));
    if (!rows.length) {
      fill(
        this.element,
        h("p", null, "No layout was recorded: the compile did not come to Triton GPU IR, or its types have none."),
      );
      return;
    }
    const number = this.number(rows);
    const chosen = rows[number]!;
    const other = rows[state.number("versus") - 1];
    const list = h(
      "aside",
      { class: "layout-list" },
      rows.map((row, at) => this.item(row, at, at === number)),
    );
    const content = h(
      "div",
      { class: "layout-body" },
      this.tools(capture, rows, chosen),
      h("div", { class: "pictures" }),
      conversions.length ? conversionTable(capture, conversions) : null,
    );
    fill(this.element, list, content);
    const pictures = content.querySelector(".pictures")!;
    const width = (content.clientWidth || 900) / (other ? 2 : 1) - 40;
    for (const row of other ? [chosen, other] : [chosen]) pictures.append(this.figure(row, width));
  }

  private number(rows: LayoutRow[]): number {
    const named = state.text("layout");
    const at = /^\d+$/.test(named) ? Number(named) - 1 : rows.findIndex((row) => row.alias === named);
    return at >= 0 && at < rows.length ? at : 0;
  }

  private step(by: number): void {
    const { rows } = this.app.data.layouts(captureNumber(this.app));
    const next = this.number(rows) + by;
    if (next >= 0 && next < rows.length) state.set({ layout: next + 1 });
  }

  private recolor(): void {
    const names = COLORS.map(([name]) => name);
    state.set({ color: names[(names.indexOf(state.text("color", "warp") as ColorBy) + 1) % names.length]! }, true);
  }

  private item(row: LayoutRow, at: number, chosen: boolean): HTMLElement {
    const text = `${String(row["name"] ?? row.alias ?? "")} ${String(row["shapeText"] ?? "")} ${(row.elements ?? []).join(" ")}`;
    return button(text, String(row.encoding ?? ""), () => state.set({ layout: at + 1 }), {
      class: "item-button",
      "aria-pressed": String(chosen),
    });
  }

  private tools(capture: Capture, rows: LayoutRow[], chosen: LayoutRow): HTMLElement {
    const others = rows.map((row, at): [string, string] => [
      String(at + 1),
      `against ${String(row["name"])} ${String(row["shapeText"])}`,
    ]);
    return h(
      "div",
      { class: "bar-of-tools" },
      select("colour", COLORS, state.text("color", "warp"), (value) => state.set({ color: value }, true)),
      select("second layout", [["", "one layout"], ...others], state.text("versus"), (value) =>
        state.set({ versus: value || null }),
      ),
      h("span", { class: "room" }),
      copyButton("encoding", "Copy the encoding", () => String(chosen.encoding ?? "")),
      copyButton("command", "Copy the command that shows it", () =>
        command("layout", capture.id, "--layout", String(chosen["name"] ?? "")),
      ),
    );
  }

  private figure(row: LayoutRow, width: number): HTMLElement {
    const map = mapOf(row);
    const facts = ((row["facts"] as string[] | undefined) ?? []).map((fact) => h("li", null, fact));
    const picture = new Picture();
    if (map) picture.show(map, state.text("color", "warp") as ColorBy, Number(row["elementBits"] ?? 16), width);
    return h(
      "figure",
      null,
      h(
        "figcaption",
        null,
        h("b", null, String(row["name"] ?? "")),
        ` ${String(row["shapeText"] ?? "")} `,
        h("span", { class: "faint" }, String(row["title"] ?? "")),
      ),
      h("code", { class: "argument" }, String(row.encoding ?? "")),
      facts.length ? h("ul", { class: "faint" }, facts) : null,
      map
        ? [map.note ? h("p", { class: "faint" }, map.note) : null, picture.element]
        : h("p", { class: "remark" }, `No map: ${row.reason || "it is too large to draw"}.`),
      uses(row),
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
