// The basis vectors of a layout, and the same as a matrix over GF(2).
import { h } from "../dom";
import type { LayoutMap } from "./map";

/** Both tables; a click on a vector chooses its bit. */
export function bitTables(map: LayoutMap, choose: (bit: number) => void): HTMLElement {
  let number = 0;
  const vectors = map.inputs.map((input) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, input.name),
      input.vectors.map((vector) => {
        const bit = number++;
        const text = `[${vector.join(", ")}]`;
        return h(
          "td",
          { "data-bit": bit },
          h("button", { type: "button", class: "link", onclick: () => choose(bit) }, text),
        );
      }),
    ),
  );
  const count = Math.round(Math.log2(map.size));
  const rows = Array.from({ length: count }, (_, at) => count - 1 - at).map((out) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, outName(map, out)),
      map.bits.map(({ flat, bit }, index) => {
        const one = Math.floor(flat / 2 ** out) % 2;
        return h(
          "td",
          { "data-bit": index, class: `${one ? "one" : "zero"}${bit === 0 && index ? " first" : ""}` },
          String(one),
        );
      }),
    ),
  );
  const head = map.bits.map(({ input, bit }) =>
    h("th", { scope: "col", title: `${input} bit ${bit}` }, `${input[0]}${bit}`),
  );
  return h(
    "div",
    { class: "bit-tables scroll", tabindex: "0", role: "region", "aria-label": "Basis vectors and matrix" },
    h("table", { class: "bases" }, h("tbody", null, vectors)),
    h("table", { class: "matrix" }, h("thead", null, h("tr", null, h("td"), head)), h("tbody", null, rows)),
  );
}

/** Marks the cells of a bit; -1 for none. */
export function markBit(element: HTMLElement, bit: number): void {
  for (const cell of element.querySelectorAll<HTMLElement>("[data-bit]"))
    cell.classList.toggle("now", Number(cell.dataset["bit"]) === bit);
}

function outName(map: LayoutMap, bit: number): string {
  let rest = bit;
  for (let at = map.shape.length - 1; at >= 0; at--) {
    const bits = Math.round(Math.log2(map.shape[at]!));
    if (rest < bits) return `${map.dimensions[at]} bit ${rest}`;
    rest -= bits;
  }
  return "";
}
