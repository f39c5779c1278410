// Live registers along a whole stage: a strip beside its pane, with the marks of spills, dots and barriers.
import type { Annotations, Kind } from "../data/annotations";
import { h, svg } from "../dom";

/** Heights that are told apart: more rows than that share one. */
const MOST_STEPS = 600;
const WORST: Kind[] = ["spill", "dot", "barrier"];

export class Strip {
  readonly element: HTMLElement;
  private readonly seen = h("div", { class: "seen" });

  /** `numbers` are the lines that the pane's rows show. */
  constructor(annotations: Annotations, numbers: number[], goTo: (line: number) => void) {
    const steps = Math.min(numbers.length, MOST_STEPS) || 1;
    const wide = Math.max(annotations.most, annotations.code.registers ?? 0, 1);
    const live = new Array<number>(steps).fill(0);
    const marks = new Array<Kind | undefined>(steps);
    numbers.forEach((line, row) => {
      const at = Math.floor((row * steps) / numbers.length);
      const one = annotations.instructions.get(line);
      if (!one) return;
      live[at] = Math.max(live[at]!, one.live);
      for (const { kind } of one.marks) {
        const known = marks[at];
        if (!known || WORST.indexOf(kind) < WORST.indexOf(known)) marks[at] = kind;
      }
    });
    const path = `M0 0${live.map((one, at) => `H${one}V${at + 1}`).join("")}H0Z`;
    const limit = annotations.code.registers;
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${wide} ${steps}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("path", { d: path, class: "curve" }),
      WORST.map((kind) =>
        svg("path", {
          d: marks.map((one, at) => (one === kind ? `M0 ${at + 0.5}H${wide}` : "")).join(""),
          class: kind,
        }),
      ),
      limit === null ? null : svg("path", { d: `M${limit} 0V${steps}`, class: "limit" }),
    );
    this.element = h(
      "div",
      { class: "strip", role: "img", "aria-label": annotations.code.said, title: annotations.code.said },
      [picture, this.seen],
    );
    this.element.addEventListener("click", (event) => {
      const box = this.element.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / box.height) * numbers.length);
      const line = numbers.slice(row).find((one) => annotations.instructions.has(one));
      if (line !== undefined) goTo(line);
    });
  }

  /** Shows which part of the text is in sight. */
  follow(scroller: HTMLElement): void {
    const show = () => {
      const all = Math.max(scroller.scrollHeight, 1);
      this.seen.style.top = `${(100 * scroller.scrollTop) / all}%`;
      this.seen.style.height = `${(100 * Math.min(scroller.clientHeight, all)) / all}%`;
    };
    scroller.addEventListener("scroll", show, { passive: true });
    requestAnimationFrame(show);
  }
}
