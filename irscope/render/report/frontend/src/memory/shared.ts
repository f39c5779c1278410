// The accesses to shared memory and their bank conflicts.
import type { Cost, Memory } from "../data/memory";
import type { Capture } from "../data/model";
import { h } from "../dom";
import { count } from "../format";
import { operationLink, pythonLink } from "../tabs/sources";
import { ways } from "./accesses";

const HEAD = ["operation", "layouts", "bits per thread", "wavefronts per warp", "minimum", "banks", "conflicts", "how"];

/** A table of accesses, the worst first. */
export function sharedTable(capture: Capture, memory: Memory): HTMLElement {
  const costs = memory.costs.filter((cost) => cost.kind === "shared");
  if (!costs.length) return h("p", { class: "faint" }, "No operation of the TTGIR accesses shared memory.");
  return h(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": "Accesses to shared memory" },
    h(
      "table",
      { class: "memory-table" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          HEAD.map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        null,
        costs.map((cost) => row(capture, memory, cost)),
      ),
    ),
  );
}

function row(capture: Capture, memory: Memory, cost: Cost): HTMLElement {
  const { figures } = cost;
  const figure = (name: string, value: number | undefined, text: (value: number) => string = count) =>
    h("td", { class: "number", "data-of": name }, value === undefined ? "" : text(value));
  const conflicts = figure("ways", figures.ways, ways);
  if ((figures.ways ?? 1) > 1) conflicts.classList.add("wasted");
  return h(
    "tr",
    { "data-line": cost.line },
    h(
      "th",
      { scope: "row" },
      operationLink(cost.line, cost.by_operation ? memory.assembly : ""),
      ` ${cost.operation} `,
      h(
        "div",
        { class: "faint" },
        pythonLink(capture, cost.place, cost.chain),
        cost.loops ? `, in ${cost.loops === 1 ? "a loop" : `${cost.loops} loops`}` : null,
      ),
    ),
    h("td", null, cost.layouts.join(" → ")),
    figure("bits_per_thread", figures.bits_per_thread),
    figure("wavefronts", figures.wavefronts),
    figure("minimum_wavefronts", figures.minimum_wavefronts),
    figure("banks", figures.banks),
    conflicts,
    h("td", null, cost.summary, cost.hint ? h("span", { class: "faint" }, ` ${cost.hint}`) : null),
  );
}
