// Draws a placed graph as SVG, to be zoomed and dragged.
import { svg } from "../dom";
import type { Placed } from "./layout";
import type { Graph } from "./model";

/** Smaller than this, labels are no text any more. */
const SMALLEST_READ = 0.8;

export class Drawing {
  readonly element: SVGSVGElement = svg("svg", { class: "graph", tabindex: "0", role: "img", "aria-label": "graph" });
  private readonly scene = svg("g");
  private nodes: SVGGElement[] = [];
  private edges: { from: number; to: number; path: SVGPathElement }[] = [];
  private placed: Placed | undefined;
  private scale = 1;
  private x = 0;
  private y = 0;
  private drag: { x: number; y: number } | undefined;

  constructor(private readonly chosen: (node: number) => void) {
    const arrow = svg(
      "marker",
      { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      svg("path", { d: "M0,0L8,4L0,8z" }),
    );
    this.element.append(svg("defs", null, arrow), this.scene);
    this.element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    });
    this.element.addEventListener("pointerdown", (event) => {
      this.drag = { x: event.clientX - this.x, y: event.clientY - this.y };
    });
    this.element.addEventListener("pointermove", (event) => {
      if (!this.drag || !event.buttons) return;
      this.x = event.clientX - this.drag.x;
      this.y = event.clientY - this.drag.y;
      this.apply();
    });
    this.element.addEventListener("pointerup", () => (this.drag = undefined));
  }

  show(graph: Graph, placed: Placed): void {
    this.placed = placed;
    this.scene.replaceChildren();
    graph.groups.forEach((group, number) => {
      const box = placed.groups[number];
      if (!box) return;
      this.scene.append(
        svg("rect", { class: "group", x: box.x, y: box.y, width: box.width, height: box.height, rx: 6 }),
        svg("text", { class: "group-label", x: box.x + 6, y: box.y + 12 }, group.label.slice(0, 60)),
      );
    });
    this.edges = graph.edges.map((edge, number) => {
      const path = svg(
        "path",
        {
          class: `edge ${edge.label === "back" ? "back" : ""}`,
          d: placed.edges[number] ?? "",
          "marker-end": "url(#arrow)",
        },
        svg("title", null, edge.label),
      );
      this.scene.append(path);
      return { from: edge.from, to: edge.to, path };
    });
    this.nodes = graph.nodes.map((node, number) => {
      const box = placed.nodes[number] ?? { x: 0, y: 0, width: 0, height: 0 };
      const element = svg(
        "g",
        { class: `node ${node.style}`, onclick: () => this.chosen(number) },
        svg("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 5 }),
        svg("text", { x: box.x + box.width / 2, y: box.y + 16, "text-anchor": "middle" }, node.label),
        svg("text", { class: "detail", x: box.x + box.width / 2, y: box.y + 30, "text-anchor": "middle" }, node.detail),
        svg("title", null, `line ${node.line}`),
      );
      this.scene.append(element);
      return element;
    });
    this.begin();
  }

  /** Marks a node and what hangs on it; brings it into sight if asked. */
  mark(node: number, reveal: boolean): void {
    this.nodes.forEach((element, number) => element.classList.toggle("chosen", number === node));
    for (const { from, to, path } of this.edges) path.classList.toggle("chosen", from === node || to === node);
    const box = this.placed?.nodes[node];
    if (!reveal || !box) return;
    const { clientWidth, clientHeight } = this.element;
    this.scale = Math.max(this.scale, 0.7);
    this.x = clientWidth / 2 - (box.x + box.width / 2) * this.scale;
    this.y = clientHeight / 2 - (box.y + box.height / 2) * this.scale;
    this.apply();
  }

  zoom(by: number, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2): void {
    const scale = Math.min(4, Math.max(0.03, this.scale * by));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.apply();
  }

  pan(x: number, y: number): void {
    this.x += x;
    this.y += y;
    this.apply();
  }

  /** All of it where that can be read, else its top. */
  private begin(): void {
    this.fit();
    const boxes = this.placed?.nodes.filter((box) => box !== undefined) ?? [];
    const first = boxes.sort((one, other) => one.y - other.y)[0];
    if (!first || this.scale >= SMALLEST_READ) return;
    this.scale = SMALLEST_READ;
    this.x = this.element.clientWidth / 2 - (first.x + first.width / 2) * this.scale;
    this.y = 40 - first.y * this.scale;
    this.apply();
  }

  fit(): void {
    const { clientWidth, clientHeight } = this.element;
    if (!this.placed || !clientWidth) return;
    const { width, height } = this.placed;
    this.scale = Math.max(
      0.03,
      Math.min(1.2, (clientWidth - 20) / Math.max(width, 1), (clientHeight - 20) / Math.max(height, 1)),
    );
    this.x = (clientWidth - width * this.scale) / 2;
    this.y = 10;
    this.apply();
  }

  private apply(): void {
    this.scene.setAttribute(
      "transform",
      `translate(${this.x.toFixed(1)} ${this.y.toFixed(1)}) scale(${this.scale.toFixed(4)})`,
    );
  }
}
