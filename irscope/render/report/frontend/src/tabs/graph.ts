// Graph: a stage's values, or its basic blocks, next to its text.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { shownText } from "../code/aliases";
import { Pane } from "../code/pane";
import { copyButton, command, save } from "../copy";
import type { Capture, Graph } from "../data/model";
import { button, fill, h, svg } from "../dom";
import { alone } from "../graph/alone";
import { Drawing } from "../graph/drawing";
import { pictureOf } from "../graph/picture";
import { state } from "../state";

/** What is drawn that is no stage: its title, and the kind of `irscope draw`. */
const OTHERS: Record<string, [string, string]> = {
  passes: ["passes", "passes"],
  loops: ["loop stages", "loop"],
  warps: ["warps", "warps"],
};
/** Drawn on a canvas, in the page's colours. */
const WARPS = "warps";

declare const globalThis: {
  irscopeRun?: (...ids: string[]) => Promise<void>;
  irscopeLayOut?: (dot: string) => Promise<string>;
};

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
  /** The nodes that stand for lines, in the order of the text. */
  private nodes: string[] = [];
  private numbers: number[] = [];
  private shown = "";
  private node = "";

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
      { keys: ["j"], text: "The next node", run: () => this.step(1) },
      { keys: ["k"], text: "The node before", run: () => this.step(-1) },
    ]);
  }

  update(): void {
    const capture = currentCapture(this.app);
    const graphs = this.app.data.graphs(captureNumber(this.app));
    const graph = graphs.find((one) => one.of === state.text("of", "ttgir")) ?? graphs.at(-1);
    const key = `${captureNumber(this.app)} ${graph?.of}`;
    if (key === this.shown) return;
    this.shown = key;
    void this.draw(capture, graphs, graph, key);
  }

  private async draw(capture: Capture, graphs: Graph[], graph: Graph | undefined, key: string): Promise<void> {
    this.graph = graph;
    this.node = "";
    this.nodes = Object.keys(graph?.lines ?? {}).sort((one, other) => this.linesOf(one)[0]! - this.linesOf(other)[0]!);
    fill(
      this.bar,
      graphs.map((row) =>
        h(
          "button",
          {
            type: "button",
            class: "toggle",
            "aria-pressed": String(row === graph),
            onclick: () => state.set({ of: row.of, node: null }),
          },
          OTHERS[row.of]?.[0] ?? row.of,
        ),
      ),
      button("fit", "All of it (0)", () => this.drawing.fit()),
      this.note,
      h("span", { class: "room" }),
      graph ? button("SVG", "Save the picture", () => this.save(capture, graph)) : null,
      graph
        ? copyButton("command", "Copy the command that makes this graph", () =>
            command("draw", ...drawn(graph, capture.id)),
          )
        : null,
    );
    this.element.classList.toggle("alone", !this.nodes.length);
    this.element.classList.toggle("wide", graph?.of === WARPS);
    if (!graph) return fill(this.note, "No graph was drawn of this capture.");
    this.showText(capture, graph);
    fill(this.note, graph.dot ? "placing …" : "");
    const picture = pictureOf(await this.picture(graph));
    if (key !== this.shown) return;
    fill(this.note);
    this.drawing.element.classList.toggle("drawn", graph.of === WARPS);
    this.drawing.show(picture);
    // One picture, made to be seen at once.
    if (graph.of === WARPS) this.drawing.fit();
    if (state.text("node")) this.choose(state.text("node"), true);
  }

  private showText(capture: Capture, graph: Graph): void {
    const stage = capture.stages.find((row) => row.stage === (graph.of === WARPS ? "ttgir" : graph.of));
    if (stage?.text === undefined) return;
    const whole = this.app.data.whole(stage.text);
    const { lines, numbers } = shownText(whole, stage.kind, { locations: false, aliases: false, attributes: true });
    this.numbers = numbers;
    this.pane.show({
      kind: stage.kind,
      lines,
      label: stage.stage,
      gutters: [(row) => String(numbers[row - 1] ?? "")],
      lineClass: (row) => this.classOf(numbers[row - 1] ?? 0),
    });
  }

  /** The graph as SVG: as `dot` placed it when the page was written, or as Graphviz does in the page. */
  private async picture(graph: Graph): Promise<string> {
    const text = this.app.data.lines(graph.text).join("\n");
    if (!graph.dot) return text;
    if (!globalThis.irscopeLayOut) await globalThis.irscopeRun?.("graphs");
    return (await globalThis.irscopeLayOut?.(text)) ?? "";
  }

  private async save(capture: Capture, graph: Graph): Promise<void> {
    const text = await this.picture(graph);
    if (graph.of === WARPS) {
      const { width, height, root } = pictureOf(text);
      const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "drawn", hidden: true }, root);
      document.body.append(drawn);
      save(`${capture.kernel}.warps.svg`, alone(drawn, width, height), "image/svg+xml");
      drawn.remove();
      return;
    }
    const attributes = 'xmlns="http://www.w3.org/2000/svg" font-family="Helvetica,Arial,sans-serif"';
    save(
      `${capture.kernel}.${graph.of}.svg`,
      graph.dot ? text : text.replace("<svg", `<svg ${attributes}`),
      "image/svg+xml",
    );
  }

  private linesOf(node: string): number[] {
    return this.graph?.lines[node] ?? [];
  }

  /** Whether a node stands for a line. */
  private holds(node: string, line: number): boolean {
    const runs = this.linesOf(node);
    return runs.some((first, at) => at % 2 === 0 && first <= line && line <= runs[at + 1]!);
  }

  private classOf(line: number): string {
    return this.holds(this.node, line) ? "lit-strong" : "";
  }

  private step(by: number): void {
    const next = this.nodes[this.nodes.indexOf(this.node) + by];
    if (next !== undefined) this.choose(next, true);
  }

  private choose(node: string, reveal = false): void {
    if (this.graph?.of === "passes") {
      // A box bears the place of its first pass.
      state.set({ tab: "passes", pass: Number(node.slice(1)) + 1 });
      return;
    }
    const [first] = this.linesOf(node);
    if (first === undefined) return;
    this.node = node;
    this.drawing.mark(node, reveal);
    this.pane.repaint();
    this.pane.goTo(this.numbers.findIndex((line) => line >= first) + 1);
    state.set({ node }, true);
  }

  private chooseLine(line: number): void {
    const node = this.nodes.find((one) => this.holds(one, line));
    if (node === undefined) return;
    this.node = node;
    this.drawing.mark(node, true);
    this.pane.repaint();
    state.set({ node }, true);
  }
}

/** The kind, the capture and the stage of a graph, as `irscope draw` takes them. */
function drawn(graph: Graph, id: string): string[] {
  const other = OTHERS[graph.of];
  if (other) return [other[1], id];
  const kind = ["source", "ttir", "ttgir", "glir"].includes(graph.of) ? "dataflow" : "control-flow";
  return [kind, id, "--stage", graph.of];
}
