// Results: the table of an ablation or a bench, or the kernels of an upgrade, each with a way to what it is about.
import type { App, Tab } from "../app";
import type { Cell, Results, ResultTable, Section, View } from "../data/results";
import { button, fill, h } from "../dom";
import { state } from "../state";

export class ResultsTab implements Tab {
  readonly name = "results";
  readonly title = "Results";
  readonly element = h("section", { class: "results", "aria-label": "Results" });

  constructor(
    private readonly app: App,
    private readonly results: Results,
  ) {
    fill(
      this.element,
      h("h1", null, results.title),
      results.about.map((line) => h("p", null, line)),
      results.sections.map(section),
    );
  }

  subject(): string {
    return this.results.title;
  }

  enter(): void {
    this.app.keys.forTab("Results", [{ keys: ["p"], text: "Print", run: () => print() }]);
  }

  update(): void {
    // Nothing here depends on what is chosen.
  }
}

function link(text: string, view: View): HTMLElement | string {
  if (!Object.keys(view).length) return text;
  return button(text, "Show it", () => state.set({ c: null, stage: null, ...view }), { class: "link" });
}

function section(one: Section): HTMLElement {
  return h(
    "section",
    { class: `card tone-${one.tone}` },
    h(
      "h2",
      null,
      one.verdict ? h("span", { class: "chip verdict" }, one.verdict) : null,
      " ",
      link(one.title, one.view),
    ),
    one.lines.map((line) => h("p", null, line)),
    one.table ? new SortedTable(one.table).element : null,
    one.details.map(([summary, text]) => h("details", null, h("summary", null, summary), h("pre", null, text))),
  );
}

/** A table that is sorted by the column whose head is pressed; a baseline stays first. */
class SortedTable {
  readonly element = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" });
  private column = -1;
  private up = true;

  constructor(private readonly table: ResultTable) {
    this.draw();
  }

  private draw(): void {
    const { columns } = this.table;
    const heads = columns.map((name, at) =>
      name
        ? h(
            "th",
            { scope: "col", "aria-sort": at === this.column ? (this.up ? "ascending" : "descending") : null },
            button(`${name}${at === this.column ? (this.up ? " ↑" : " ↓") : ""}`, "Sort by this", () => this.sort(at), {
              class: "link",
            }),
          )
        : h("td"),
    );
    const noted = columns.map((_, at) => this.table.rows.some((row) => row[at]!.note));
    const body = this.order().map((row) =>
      h(
        "tr",
        { class: `tone-${this.table.tones[row]}${this.table.has_baseline && row === 0 ? " baseline" : ""}` },
        this.table.rows[row]!.map((cell, at) => cellOf(cell, noted[at]!)),
      ),
    );
    fill(
      this.element,
      h("table", { class: "result-table" }, h("thead", null, h("tr", null, heads)), h("tbody", null, body)),
    );
  }

  private order(): number[] {
    const fixed = this.table.has_baseline ? 1 : 0;
    const rows = this.table.rows.map((_, row) => row);
    const { column } = this;
    if (column < 0) return rows;
    const key = (row: number) => this.table.rows[row]![column]!.key;
    const compared = (one: number, other: number) => {
      const [a, b] = [key(one), key(other)];
      if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
      const found = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
      return this.up ? found : -found;
    };
    return [...rows.slice(0, fixed), ...rows.slice(fixed).sort((one, other) => compared(one, other) || one - other)];
  }

  private sort(column: number): void {
    this.up = column === this.column ? !this.up : true;
    this.column = column;
    this.draw();
    this.element.querySelectorAll<HTMLElement>("thead tr > *")[column]?.querySelector("button")?.focus();
  }
}

/** A cell; where a column has notes, each of its cells has room for one, so that the values stand below one another. */
function cellOf(cell: Cell, hasNotes: boolean): HTMLElement {
  const value = typeof cell.key === "number" ? "value" : "";
  return h(
    "td",
    { class: `${value} tone-${cell.tone}` },
    link(cell.text, cell.view),
    hasNotes ? h("span", { class: "note" }, cell.note) : null,
  );
}
