// A picture of a graph, to be zoomed and dragged.
import { svg } from "../dom";
import type { Picture } from "./picture";

export class Drawing {
  readonly element: SVGSVGElement = svg("svg", { class: "graph", tabindex: "0", role: "img", "aria-label": "graph" });
  private readonly scene = svg("g");
  private picture: Picture | undefined;
  private edges: { ends: string[]; element: Element }[] = [];
  private scale = 1;
  private x = 0;
  private y = 0;
  private drag: { x: number; y: number } | undefined;

  constructor(private readonly chosen: (node: string) => void) {
    this.element.append(this.scene);
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

  show(picture: Picture): void {
    this.picture = picture;
    this.scene.replaceChildren(picture.root);
    this.edges = [];
    for (const [name, element] of picture.named) {
      if (element.classList.contains("edge")) {
        const ends = name.split("->").map((end) => end.split(":")[0]!);
        this.edges.push({ ends, element });
      } else if (element.classList.contains("node")) {
        element.addEventListener("click", () => this.chosen(name));
      }
    }
    this.fit();
  }

  /** Marks a node and what hangs on it; brings it into sight if asked. */
  mark(node: string, reveal: boolean): void {
    for (const [name, element] of this.picture?.named ?? []) element.classList.toggle("chosen", name === node);
    for (const { ends, element } of this.edges) element.classList.toggle("chosen", ends.includes(node));
    const found = this.picture?.named.get(node);
    if (!reveal || !found) return;
    const [own, all] = [found.getBoundingClientRect(), this.element.getBoundingClientRect()];
    this.pan(all.x + all.width / 2 - own.x - own.width / 2, all.y + all.height / 2 - own.y - own.height / 2);
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

  fit(): void {
    const { clientWidth, clientHeight } = this.element;
    if (!this.picture || !clientWidth) return;
    const { width, height } = this.picture;
    this.scale = Math.max(0.03, Math.min(1.2, clientWidth / Math.max(width, 1), clientHeight / Math.max(height, 1)));
    this.x = (clientWidth - width * this.scale) / 2;
    this.y = 0;
    this.apply();
  }

  private apply(): void {
    this.scene.setAttribute(
      "transform",
      `translate(${this.x.toFixed(1)} ${this.y.toFixed(1)}) scale(${this.scale.toFixed(4)})`,
    );
  }
}
