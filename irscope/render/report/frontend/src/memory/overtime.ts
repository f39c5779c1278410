// Memory over time: the picture that irscope drew when it wrote the page, and its buffers as a table.
import type { Memory, MemoryOverTime } from "../data/memory";
import type { Capture } from "../data/model";
import { h, svg, table } from "../dom";
import { count } from "../format";
import { pictureOf } from "../graph/picture";
import { operationLink, pythonLink } from "../tabs/sources";

const CHOSEN = "chosen";

/** The picture and a table for each memory; a box and its row are chosen together. */
export function overTime(capture: Capture, memory: Memory): HTMLElement {
  if (!memory.picture)
    return h(
      "p",
      { class: "faint" },
      "The capture does not hold the IR after shared memory was allocated: record it again, with --snapshots triton.",
    );
  const { width, height, root } = pictureOf(memory.picture);
  const look = { class: "mem", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Buffers over time" };
  const picture = svg("svg", look, root);
  const boxes = [...picture.querySelectorAll("[data-buffer]")];
  const tables = memory.memories.map((one) => holderTable(capture, one));
  // Boxes are numbered through all memories, in the order of the tables' rows.
  const rows = tables.flatMap((one) => [...one.querySelectorAll("tbody tr")]);
  const choose = (at: number) => {
    for (const one of [...boxes, ...rows]) one.classList.remove(CHOSEN);
    boxes.find((box) => box.getAttribute("data-buffer") === String(at))?.classList.add(CHOSEN);
    rows[at]?.classList.add(CHOSEN);
    rows[at]?.scrollIntoView({ block: "nearest" });
  };
  for (const box of boxes) box.addEventListener("click", () => choose(Number(box.getAttribute("data-buffer"))));
  rows.forEach((row, at) => row.querySelector(".show")?.addEventListener("click", () => choose(at)));
  return h(
    "div",
    null,
    h("div", { class: "scroll drawn", role: "region", tabindex: "0", "aria-label": "Memory over time" }, picture),
    memory.memories.map((one, at) => [
      h("h3", null, `${one.headline}${one.peak ? ` · ${one.peak}` : ""}`),
      one.holders.length ? tables[at]! : null,
    ]),
  );
}

function holderTable(capture: Capture, memory: MemoryOverTime): HTMLElement {
  const rows = memory.holders.map((holder, at) => {
    const { buffer } = holder;
    return [
      h("button", { type: "button", class: "link show", title: "Show it in the picture" }, String(at + 1)),
      holder.title,
      buffer.ttgir_line ? [operationLink(buffer.ttgir_line), ` ${buffer.owner}`] : buffer.owner,
      pythonLink(capture, buffer.place, buffer.chain),
      count(buffer.offset),
      `${buffer.is_exact ? "" : "at most "}${count(buffer.size)}`,
      buffer.padding ? count(buffer.padding) : "",
      `${buffer.start} to ${buffer.end - 1}`,
      holder.at_peak ? "yes" : "",
    ];
  });
  const head = [
    "number",
    "buffer",
    "operation",
    "Python",
    "offset",
    memory.unit,
    "of it padding",
    "steps",
    "at the peak",
  ];
  return table(head, rows, { class: "memory-table" });
}
