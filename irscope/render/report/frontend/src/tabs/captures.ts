// The table of a report's captures: sorted, filtered, and two of them picked for a comparison.
import { captureNumber, type App } from "../app";
import type { Capture } from "../data/model";
import { button, fill, h } from "../dom";
import { count, milliseconds, resourceValue } from "../format";
import { state } from "../state";

type Column = [string, (capture: Capture) => string | number | null, ((capture: Capture) => string)?];

const option = (name: string) => (capture: Capture) => {
  const value = capture.options.find(([key]) => key === name)?.[1];
  return typeof value === "number" ? value : null;
};
const resource = (name: string) => (capture: Capture) => capture.resources[name] ?? null;

const OCCUPANCY = "occupancy_percent";

function spilled({ resources }: Capture): number | null {
  const [stored, loaded] = [resources["spill_store_bytes"], resources["spill_load_bytes"]];
  return stored === undefined && loaded === undefined ? null : (stored ?? 0) + (loaded ?? 0);
}

const COLUMNS: Column[] = [
  ["kernel", (one) => one.kernel],
  ["target", (one) => one.target],
  ["differs in", (one) => one.differsIn],
  ["plan", (one) => one.plan],
  ["warps", option("num_warps")],
  ["stages", option("num_stages")],
  ["registers", resource("registers")],
  ["spill B", spilled],
  ["shared B", resource("shared_bytes")],
  ["occupancy", resource(OCCUPANCY), (one) => resourceValue(OCCUPANCY, one.resources[OCCUPANCY])],
  ["instructions", resource("instruction_count")],
  ["compile", (one) => one.compileUs, (one) => milliseconds(one.compileUs)],
  ["status", (one) => one.status],
];

const FIGURES = new Set([
  "warps",
  "stages",
  "registers",
  "spill B",
  "shared B",
  "occupancy",
  "instructions",
  "compile",
]);

export function captureTable(app: App): HTMLElement {
  const captures = app.data.captures;
  const picked: number[] = [];
  const columns = COLUMNS.filter(([name, value]) => !["plan", "differs in"].includes(name) || captures.some(value));
  const body = h("tbody");
  const filter = h("input", {
    type: "search",
    placeholder: "filter",
    "aria-label": "filter captures",
    value: state.text("find"),
  });
  const compare = button("compare", "Compare the two that are picked", () => {
    if (picked.length === 2) state.set({ tab: "compare", a: picked[0]! + 1, b: picked[1]! + 1 });
  });
  compare.disabled = true;

  const draw = () => {
    const [column, falling] = [Math.abs(state.number("sort")) - 1, state.number("sort") < 0];
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = captures.map((capture, number) => ({ capture, number }));
    const kept = rows.filter(({ capture }) => {
      const text = columns
        .map(([, value]) => value(capture))
        .join(" ")
        .toLowerCase();
      return words.every((word) => text.includes(word));
    });
    if (column >= 0 && columns[column]) {
      const value = columns[column][1];
      kept.sort((a, b) => compareCells(value(a.capture), value(b.capture)) * (falling ? -1 : 1));
    }
    const current = captureNumber(app);
    fill(
      body,
      kept.map(({ capture, number }) => line(capture, number, number === current)),
    );
  };

  const line = (capture: Capture, number: number, current: boolean) => {
    const pick = h("input", { type: "checkbox", "aria-label": `pick ${number + 1}`, checked: picked.includes(number) });
    pick.addEventListener("change", () => {
      if (pick.checked) picked.push(number);
      else picked.splice(picked.indexOf(number), 1);
      if (picked.length > 2) picked.shift();
      compare.disabled = picked.length !== 2;
      draw();
    });
    const open = button(
      String(number + 1),
      "Look at this one",
      () => state.set({ c: number ? number + 1 : null, pass: null, at: null }),
      { class: "link" },
    );
    const cells = columns.map(([name, value, text]) => {
      const found = value(capture);
      return h(
        "td",
        { class: FIGURES.has(name) ? "number" : "", title: typeof found === "string" ? found : null },
        text ? text(capture) : typeof found === "number" ? count(found) : (found ?? "–"),
      );
    });
    return h("tr", { class: current ? "current" : "" }, h("td", null, pick), h("td", null, open), cells);
  };

  const head = columns.map(([name], index) =>
    h(
      "th",
      { scope: "col" },
      button(
        name,
        `Sort by ${name}`,
        () => {
          const sort = state.number("sort");
          state.set({ sort: sort === index + 1 ? -(index + 1) : index + 1 }, true);
          draw();
        },
        { class: "link" },
      ),
    ),
  );
  filter.addEventListener("input", () => {
    state.set({ find: filter.value }, true);
    draw();
  });
  draw();
  return h(
    "section",
    { class: "card captures" },
    h("h2", null, `${captures.length} captures `, filter, compare),
    h(
      "div",
      { class: "scroll" },
      h("table", null, h("thead", null, h("tr", null, h("td"), h("th", { scope: "col" }, "#"), head)), body),
    ),
  );
}

function compareCells(one: string | number | null, other: string | number | null): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  return typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other));
}
