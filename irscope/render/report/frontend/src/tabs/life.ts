// The life of an operation that was clicked: the pass that made it and the one that removes it, to jump to.
import type { App } from "../app";
import type { Fate } from "../data/lives";
import { labelOf, type Capture } from "../data/model";
import { button, h } from "../dom";
import { state } from "../state";

/** What made and what removes the operation on a line of a text; empty where there is none that is followed. */
export function lifeOf(app: App, number: number, text: number, line: number): HTMLElement[] {
  const capture = app.data.captures[number];
  const life = capture && app.data.lives(number).of(text, line);
  if (!life) return [];
  const parts = [h("span", null, " made by ", fateOf(capture, life.made))];
  if (life.removed !== "none") parts.push(h("span", null, " removed by ", fateOf(capture, life.removed)));
  return parts;
}

function fateOf(capture: Capture, fate: Fate): (HTMLElement | string)[] {
  if (fate === "first") return ["the front end"];
  if (typeof fate === "string") return ["one of several passes: it is one of equal operations"];
  const [first, last] = fate.passes;
  const jump = (pass: number) =>
    button(labelOf(capture.passes[pass]!), "Go to this pass", () => state.set({ tab: "passes", pass: pass + 1 }), {
      class: "link",
    });
  return first === last ? [jump(last)] : ["one of the passes from ", jump(first), " to ", jump(last)];
}
