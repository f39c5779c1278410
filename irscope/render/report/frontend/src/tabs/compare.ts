// Compare: two captures of the file, by what went in, what came out, and every stage's text.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { shownLines, type Whole } from "../code/aliases";
import { command, copyButton } from "../copy";
import type { Capture, Change, LineChange, Tables } from "../data/model";
import { DiffView } from "../diff/view";
import { button, fill, h, select, table, toggle } from "../dom";
import { count, fileName, milliseconds, resourceTitle, resourceValue, shown, signed, tenths } from "../format";
import { state } from "../state";
import { lineChanges, tablesOf } from "./compared";

export class CompareTab implements Tab {
  readonly name = "compare";
  readonly title = "Compare";
  readonly element = h("section", { class: "compare", "aria-label": "Compare" });
  private readonly view = new DiffView();
  private pair = "";
  /** Of each stage that was compared, whether its texts say the same. */
  private readonly same = new Map<string, boolean>();
  private lines: LineChange[] | undefined;
  private waiting = 0;
  private readonly lineCard = h("section", { class: "card" });

  constructor(private readonly app: App) {}

  enter(): void {
    const flip = (name: string) => () => state.set({ [name]: !state.flag(name) }, true);
    this.app.keys.forTab("Compare", [
      { keys: ["j", "ArrowDown"], text: "The next stage", run: () => this.step(1) },
      { keys: ["k", "ArrowUp"], text: "The stage before, and the tables", run: () => this.step(-1) },
      { keys: ["n"], text: "The next change in the diff", run: () => this.view.step(1) },
      { keys: ["N"], text: "The change before", run: () => this.view.step(-1) },
      { keys: ["["], text: "The second one: the capture before", run: () => this.another(-1) },
      { keys: ["]"], text: "The second one: the next capture", run: () => this.another(1) },
      { keys: ["x"], text: "Swap the two", run: () => this.choose(this.sides()[1], this.sides()[0]) },
      { keys: ["s"], text: "Side by side, or unified", run: flip("side") },
      { keys: ["l"], text: "Locations", run: flip("loc") },
      { keys: ["a"], text: "Aliases in place", run: flip("alias") },
      { keys: ["r"], text: "Attributes", run: flip("bare") },
    ]);
  }

  update(): void {
    const captures = this.app.data.captures;
    if (captures.length < 2) {
      const one = currentCapture(this.app);
      fill(
        this.element,
        h("p", null, "This report holds one capture. With two or more, any pair can be compared here:"),
        h(
          "p",
          null,
          h("code", null, command("report", one.id, "ANOTHER", "-o", "both.html")),
          " ",
          copyButton("command", "Copy it", () => command("report", one.id, "ANOTHER", "-o", "both.html")),
        ),
        h(
          "p",
          { class: "faint" },
          "The effect of a pass, without a report: ",
          h("code", null, command("diff", one.id, "--disable-pass", "PASS")),
        ),
      );
      return;
    }
    const [a, b] = this.sides();
    const tables = this.tables(a, b);
    const stage = state.text("stage");
    fill(
      this.element,
      this.head(a, b),
      this.stageBar(tables, stage),
      stage ? this.diff(stage, a, b) : this.overview(tables, captures[a]!, captures[b]!),
    );
    this.readAhead(a, b, tables);
  }

  private sides(): [number, number] {
    const last = this.app.data.captures.length - 1;
    const within = (value: number) => Math.min(Math.max(value, 0), last);
    const chosen = captureNumber(this.app);
    // What is looked at, against the first other one of its kernel.
    const { captures } = this.app.data;
    const others = captures.flatMap((one, at) =>
      at === chosen ? [] : [{ at, same: one.kernel === captures[chosen]?.kernel }],
    );
    const partner = (others.find((one) => one.same) ?? others[0])?.at ?? chosen;
    const [a, b] = partner < chosen ? [partner, chosen] : [chosen, partner];
    return [within(state.number("a", a + 1) - 1), within(state.number("b", b + 1) - 1)];
  }

  subject(): string {
    const { captures } = this.app.data;
    const [a, b] = this.sides();
    const [one, other] = [captures[a]!, captures[b]!];
    const names = [one, other].map((side) =>
      one.kernel === other.kernel ? side.differsIn || side.id.slice(0, 8) : side.kernel,
    );
    return captures.length < 2
      ? one.kernel
      : `${one.kernel === other.kernel ? `${one.kernel}: ` : ""}${names.join(" → ")}`;
  }

  private another(by: number): void {
    const [a, b] = this.sides();
    const count = this.app.data.captures.length;
    let next = (b + by + count) % count;
    if (next === a) next = (next + by + count) % count;
    this.choose(a, next);
  }

  private choose(a: number, b: number): void {
    state.set({ a: a + 1, b: b + 1 });
  }

  private tables(a: number, b: number): Tables {
    const pair = `${a} ${b}`;
    if (this.pair !== pair) {
      this.pair = pair;
      this.same.clear();
      this.lines = undefined;
    }
    return tablesOf(this.app, a, b, (stage) => this.same.get(stage));
  }

  /** Compares the stages, then counts by line of Python, one at a time while the reader reads. */
  private readAhead(a: number, b: number, tables: Tables): void {
    cancelIdleCallback(this.waiting);
    const differing = tables.stages.filter((row) => row.state === "differs").map((row) => row.stage);
    const waiting = differing.filter((stage) => !this.same.has(stage));
    const step = () => {
      if (!this.element.isConnected) return;
      const stage = waiting.shift();
      if (stage !== undefined) {
        const found = this.app.data.stageDiff(a, b, stage);
        this.same.set(stage, found?.entries.every((entry) => entry.op === "equal") ?? false);
        this.waiting = requestIdleCallback(step);
        return;
      }
      const known = this.lines;
      this.lines ??= lineChanges(
        this.app.data,
        a,
        b,
        differing.filter((one) => one !== "source" && !this.same.get(one)),
      );
      if (!known) this.refresh(this.tables(a, b));
    };
    if (!this.lines) this.waiting = requestIdleCallback(step);
  }

  /** Says what the reading ahead found, in place: a click that is under way keeps the element it began on. */
  private refresh(tables: Tables): void {
    const states = new Map(tables.stages.map((row) => [row.stage, row.state]));
    for (const one of this.element.querySelectorAll<HTMLElement>("[data-state-of]")) {
      one.textContent = states.get(one.dataset["stateOf"]!) ?? null;
    }
    this.fillLines();
  }

  private fillLines(): void {
    const rows = (this.lines ?? [])
      .slice(0, 20)
      .map((row) => [
        `${fileName(row.file)}:${row.line}`,
        row.stages.map(([stage, change]) => `${signed(change)} ${stage}`).join(", "),
      ]);
    this.lineCard.hidden = !rows.length;
    fill(this.lineCard, h("h2", null, "Python lines whose operations changed most"), table(["line", "change"], rows));
  }

  private head(a: number, b: number): HTMLElement {
    const captures = this.app.data.captures;
    const options = captures.map((one, number): [string, string] => [
      String(number),
      `${number + 1}. ${one.kernel} · ${one.differsIn || one.target} · ${one.id.slice(0, 8)}`,
    ]);
    return h(
      "div",
      { class: "bar-of-tools" },
      select("before", options, String(a), (value) => this.choose(Number(value), b)),
      button("⇄", "Swap (x)", () => this.choose(b, a)),
      select("after", options, String(b), (value) => this.choose(a, Number(value))),
      h("span", { class: "room" }),
      copyButton("command", "Copy the command that compares them", () =>
        command(
          "diff",
          captures[a]!.id,
          captures[b]!.id,
          ...(state.text("stage") ? ["--stage", state.text("stage")] : []),
        ),
      ),
    );
  }

  private stageBar(tables: Tables, chosen: string): HTMLElement {
    const made = (name: string, ...text: (string | Node)[]) =>
      h(
        "button",
        {
          type: "button",
          class: "toggle",
          "aria-pressed": String(name === chosen),
          onclick: () => state.set({ stage: name || null }),
        },
        text,
      );
    return h(
      "div",
      { class: "bar-of-tools" },
      made("", "tables"),
      tables.stages.map((row) => made(row.stage, `${row.stage}: `, stateOf(row))),
    );
  }

  private step(by: number): void {
    const [a, b] = this.sides();
    if (this.app.data.captures.length < 2) return;
    const names = ["", ...this.tables(a, b).stages.map((row) => row.stage)];
    const next = names[names.indexOf(state.text("stage")) + by];
    if (next !== undefined) state.set({ stage: next || null });
  }

  private diff(stage: string, a: number, b: number): HTMLElement {
    const found = this.app.data.stageDiff(a, b, stage);
    if (!found) return h("p", null, "The texts are the same, or one side has none.");
    const toggles = { locations: state.flag("loc"), aliases: state.flag("alias"), attributes: !state.flag("bare") };
    const texts = [a, b].map((side) => this.app.data.whole(this.app.data.stageText(side, stage)!)) as [Whole, Whole];
    this.view.show(found, shownLines(found, texts, toggles), state.flag("side"));
    const flip = (name: string, text: string) =>
      toggle(text, text, state.flag(name), (on) => state.set({ [name]: on }, true));
    return h(
      "div",
      { class: "compared" },
      h(
        "div",
        { class: "bar-of-tools" },
        flip("side", "side by side"),
        flip("loc", "locations"),
        flip("alias", "aliases in place"),
        flip("bare", "no attributes"),
        h("span", { class: "faint" }, found.fallback ?? "", " ", found.summary),
        h("span", { class: "room" }),
        copyButton("diff", "Copy this diff", () => this.view.text()),
      ),
      this.view.element,
    );
  }

  private overview(tables: Tables, left: Capture, right: Capture): HTMLElement {
    const stages = tables.stages.map((row) => [
      button(row.stage, "Its diff", () => state.set({ stage: row.stage }), { class: "link" }),
      stateOf(row),
      row.operations.some(Boolean) ? `${count(row.operations[0])} → ${count(row.operations[1])}` : "",
      row.changes.slice(0, 5).map(([name, change]) => h("span", { class: "chip" }, `${signed(change)} ${name}`)),
    ]);
    const passes = tables.passes
      .map((row) => [row.label, row.outcome.join(" → "), milliseconds(row.left_us), milliseconds(row.right_us)])
      .filter((row) => row[1] !== "ran → ran");
    this.fillLines();
    return h(
      "div",
      { class: "cards scrolled" },
      card("Inputs that differ", changes(tables.differences, "No input differs.", false)),
      card("Resources", changes(tables.resources, "The same.")),
      card("Stages", table(["stage", "", "operations", "largest changes"], stages)),
      card("Instructions", changes(tables.instructions, "The same.")),
      this.lineCard,
      passes.length ? card("Passes", table(["pass", "", left.id.slice(0, 8), right.id.slice(0, 8)], passes)) : null,
    );
  }
}

function stateOf(row: Tables["stages"][number]): HTMLElement {
  return h("span", { "data-state-of": row.stage }, row.state);
}

function card(title: string, content: Node): HTMLElement {
  return h("section", { class: "card" }, h("h2", null, title), content);
}

function changes(rows: Change[], otherwise: string, counted = true): HTMLElement {
  if (!rows.length) return h("p", { class: "faint" }, otherwise);
  return table(
    [],
    rows.map((row) => {
      const [one, other] = [row.left ?? 0, row.right ?? 0];
      const areNumbers = counted && typeof one === "number" && typeof other === "number";
      return [
        counted ? resourceTitle(row.name) : row.name,
        counted ? resourceValue(row.name, row.left) : shown(row.left),
        "→",
        counted ? resourceValue(row.name, row.right) : shown(row.right),
        ...(counted ? [areNumbers ? signed(tenths(other - one)) : ""] : []),
      ];
    }),
    { class: "figures" },
  );
}
