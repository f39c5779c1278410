// Graph: a stage's values, or its basic blocks, next to its text.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { shownText } from "../code/aliases";
import { Pane } from "../code/pane";
import { copyButton, command } from "../copy";
import type { Capture, Stage } from "../data/model";
import { button, fill, h, toggle } from "../dom";
import { Drawing } from "../graph/drawing";
import { place } from "../graph/layout";
import { graphOf, type Graph } from "../graph/model";
import { state } from "../state";

export class GraphTab implements Tab {
  readonly name = "graph";
  readonly title = "Graph";
  readonly element = h("section", { class: "graph-tab", "aria-label": "Graph" });
  private readonly bar = h("div", { class: "bar-of-tools" });
  private readonly note = h("span", { class: "faint" });
  private readonly left = h("div", { class: "graph-holder" });
  private readonly drawing = new Drawing((node) => this.choose(node));
  private readonly pane: Pane;
  private graph: Graph | undefined;
  private numbers: number[] = [];
  private shown = "";
  private node = -1;

  constructor(private readonly app: App) {
    const right = h("div", { class: "pane" });
    this.left.append(this.drawing.element);
    this.element.append(this.bar, h("div", { class: "graph-split" }, this.left, right));
    this.pane = new Pane(right, { click: (row) => this.chooseLine(this.numbers[row - 1] ?? 0) });
  }

  enter(): void {
    const pan = (x: number, y: number) => () => this.drawing.pan(x, y);
    this.app.keys.forTab("Graph", [
      { keys: ["+", "="], text: "Nearer", run: () => this.drawing.zoom(1.25) },
      { keys: ["-"], text: "Further", run: () => this.drawing.zoom(0.8) },
      { keys: ["0"], text: "All of it", run: () => this.drawing.fit() },
      { keys: ["ArrowLeft"], text: "Move left", run: pan(80, 0) },
      { keys: ["ArrowRight"], text: "Move right", run: pan(-80, 0) },
      { keys: ["ArrowUp"], text: "Move up", run: pan(0, 80) },
      { keys: ["ArrowDown"], text: "Move down", run: pan(0, -80) },
      { keys: ["j"], text: "The next node", run: () => this.choose(this.node + 1) },
      { keys: ["k"], text: "The node before", run: () => this.choose(this.node - 1) },
      { keys: ["c"], text: "Constants", run: () => state.set({ constants: !state.flag("constants") }, true) },
    ]);
  }

  update(): void {
    const capture = currentCapture(this.app);
    const stage = this.stage(capture);
    const key = `${captureNumber(this.app)} ${stage?.stage} ${state.flag("constants")}`;
    if (key === this.shown) return;
    this.shown = key;
    void this.draw(capture, stage, key);
  }

  private stage(capture: Capture): Stage | undefined {
    const texts = capture.stages.filter((row) => row.text !== undefined);
    return texts.find((row) => row.stage === state.text("of", "ttgir")) ?? texts.at(-1);
  }

  private async draw(capture: Capture, stage: Stage | undefined, key: string): Promise<void> {
    const stages = capture.stages.filter((row) => row.text !== undefined);
    fill(
      this.bar,
      stages.map((row) =>
        h(
          "button",
          {
            type: "button",
            class: "toggle",
            "aria-pressed": String(row === stage),
            onclick: () => state.set({ of: row.stage }),
          },
          row.stage,
        ),
      ),
      stage?.kind === "mlir"
        ? toggle("constants", "Show constants (c)", state.flag("constants"), (on) => state.set({ constants: on }, true))
        : null,
      button("fit", "All of it (0)", () => this.drawing.fit()),
      this.note,
      h("span", { class: "room" }),
      stage
        ? copyButton("command", "Copy the command that makes this graph", () =>
            command("graph", capture.id, "--stage", stage.stage),
          )
        : null,
    );
    if (!stage) return fill(this.note, "No text, no graph.");
    const all = this.app.data.lines(stage.text!);
    const { lines, numbers } = shownText(all, stage.kind, { locations: false, aliases: false, attributes: true });
    this.numbers = numbers;
    const graph = graphOf(all, stage.kind, state.flag("constants"));
    this.graph = graph;
    this.node = -1;
    this.pane.show({
      kind: stage.kind,
      lines,
      label: stage.stage,
      gutters: [(row) => String(numbers[row - 1] ?? "")],
      lineClass: (row) => this.classOf(numbers[row - 1] ?? 0),
    });
    fill(this.note, "placing …");
    const placed = await place(graph);
    if (key !== this.shown) return;
    fill(this.note, graph.note || `${graph.nodes.length} nodes, ${graph.edges.length} edges`);
    this.drawing.show(graph, placed);
    if (state.number("node")) this.choose(state.number("node") - 1);
  }

  private classOf(line: number): string {
    const node = this.graph?.nodes[this.node];
    return node && line >= node.line && line <= node.end ? "lit-strong" : "";
  }

  private choose(node: number): void {
    const found = this.graph?.nodes[node];
    if (!found) return;
    this.node = node;
    this.drawing.mark(node, false);
    this.pane.repaint();
    this.pane.goTo(this.numbers.findIndex((line) => line >= found.line) + 1);
    state.set({ node: node + 1 }, true);
  }

  private chooseLine(line: number): void {
    const node = this.graph?.nodes.findLastIndex((one) => one.line <= line && one.end >= line) ?? -1;
    if (node < 0) return;
    this.node = node;
    this.drawing.mark(node, true);
    this.pane.repaint();
    state.set({ node: node + 1 }, true);
  }
}
