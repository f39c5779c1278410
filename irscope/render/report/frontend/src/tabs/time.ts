// Time: the predicted time of the launch, what bounds it and the share of each line, and where the compile's time went.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { command } from "../copy";
import type { Capture, Predicted } from "../data/model";
import { fill, h, table } from "../dom";
import { card } from "./overview";
import { flameGraph, predictedTime } from "./poster";
import { pythonLink } from "./sources";

export class TimeTab implements Tab {
  readonly name = "time";
  readonly title = "Time";
  readonly element = h("section", { class: "overview", "aria-label": "Time" });

  constructor(private readonly app: App) {}

  enter(): void {
    this.app.keys.forTab("Time", [{ keys: ["p"], text: "Print", run: () => print() }]);
  }

  update(): void {
    const capture = currentCapture(this.app);
    const predicted = this.app.data.predicted(captureNumber(this.app));
    fill(
      this.element,
      predicted ? predicted.about.map((line) => h("p", null, line)) : none(capture),
      predictedTime(this.app),
      predicted ? cards(capture, predicted) : null,
      flameGraph(this.app),
    );
  }
}

function cards(capture: Capture, { units, states, lines, notes }: Predicted): HTMLElement[] {
  const placed = lines[1].map(([place, ...cells]) => [place ? pythonLink(capture, place, []) : "?", ...cells]);
  const items = notes.map((note) => h("li", null, note));
  const small = [
    card("Units", table(units[0], units[1], { class: "figures" })),
    states[1].length ? card("Warps", table(states[0], states[1], { class: "figures" })) : [],
    card("Notes", h("ul", null, items)),
  ];
  const wide = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Lines" };
  return [
    ...(placed.length ? [card("Lines", h("div", wide, table(lines[0], placed, { class: "figures" })))] : []),
    h("div", { class: "cards" }, small),
  ];
}

function none(capture: Capture): HTMLElement {
  const why = h("code", null, command("time", capture.id));
  return h(
    "p",
    { class: "remark" },
    "The report holds no predicted time of this launch: ",
    why,
    " predicts it, or prints why not.",
  );
}
