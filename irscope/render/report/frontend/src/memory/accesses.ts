// The accesses to global memory: what each operation asks for, in single programs and in the launch.
import type { GlobalAccess, Certainty, Cost, Memory, Span, Traffic } from "../data/memory";
import { MOST } from "../data/memory";
import type { Capture } from "../data/model";
import { h } from "../dom";
import { count } from "../format";
import { operationLink, pythonLink } from "../tabs/sources";
import { difference, isKnown, isSame, spanText } from "./spans";

const SECTOR_BYTES = 32;
const WORDS: Record<Certainty, string> = { exact: "exact", range: "between these bounds", sampled: "sampled" };

/** One line of an operation's rows. */
interface Row {
  scope: string;
  traffic: Traffic;
  mark: string;
}

/** A table of accesses, a group of rows for each; with the assumptions that its figures make. */
export function accessTable(capture: Capture, memory: Memory): HTMLElement {
  const costs = memory.costs.filter((cost) => cost.access !== null);
  if (!costs.length) return h("p", { class: "faint" }, "No operation of the TTGIR accesses global memory.");
  const { unit_bytes: unit, line_bytes: line } = costs[0]!.access!;
  const units = unit === SECTOR_BYTES ? "sectors" : `lines of ${unit} bytes`;
  const assumed = [...new Set(costs.flatMap((cost) => cost.access!.assumed))];
  const head = ["operation", "scope", "executions", "bytes requested", units, "ideal", "wasted", "minimum"];
  if (unit !== line) head.push("lines");
  head.push("masked lanes", "accuracy");
  return h(
    "div",
    null,
    h(
      "div",
      { class: "scroll", role: "region", tabindex: "0", "aria-label": "Accesses to global memory" },
      h(
        "table",
        { class: "memory-table" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            head.map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        costs.map((cost) => group(capture, memory, cost, cost.access!, head.length, unit !== line, assumed)),
      ),
    ),
    h(
      "p",
      { class: "faint" },
      `Ideal: the ${units} that each instruction's distinct bytes would fill; wasted: those accessed beyond the ideal; ` +
        "minimum: those that the distinct bytes of a warp fill, per execution.",
    ),
    assumed.length
      ? [
          h("p", { class: "faint" }, "Assumed, by the numbers in the table:"),
          h(
            "ol",
            { class: "faint" },
            assumed.map((text) => h("li", null, text)),
          ),
        ]
      : null,
  );
}

function group(
  capture: Capture,
  memory: Memory,
  cost: Cost,
  access: GlobalAccess,
  columns: number,
  withLines: boolean,
  assumed: string[],
): HTMLElement {
  const nothing = whyNoFigures(access);
  const rows = nothing ? [] : rowsOf(access);
  const notes = access.assumed.map((text) => assumed.indexOf(text) + 1).sort((one, other) => one - other);
  const numbers = notes.length ? h("span", { class: "faint" }, ` assumed ${notes.join(", ")}`) : null;
  const head = operationCell(capture, memory, cost, access, Math.max(rows.length, 1));
  const body = rows.map((row, at) =>
    h(
      "tr",
      { "data-scope": row.scope },
      at ? null : head,
      h("th", { scope: "row" }, row.scope),
      cells(row.traffic, withLines, access.bits_per_thread > 0),
      h("td", null, row.mark, numbers),
    ),
  );
  if (nothing) body.push(h("tr", null, head, h("td", { colspan: columns - 1 }, nothing, numbers)));
  if (cost.hint) body.push(h("tr", { class: "hint" }, h("td", { colspan: columns }, cost.hint)));
  return h("tbody", { "data-line": access.line }, body);
}

/** Why an operation has no figures at all; empty if it has some. */
function whyNoFigures(access: GlobalAccess): string {
  const { executions, units } = access.launch;
  if (!executions[1]) return "is never executed in this launch";
  const isUnknown = units[1] >= MOST && !units[0] && !access.bits_per_thread;
  return isUnknown ? `its requested bytes are unknown: ${access.basis}` : "";
}

function operationCell(capture: Capture, memory: Memory, cost: Cost, access: GlobalAccess, rows: number): HTMLElement {
  const widths = Object.entries(cost.figures.assembly_bits ?? {}).map(([bits, number]) => `${number} × ${bits} bits`);
  const counted = cost.by_operation && widths.length ? `${memory.assembly}: ${widths.join(", ")}` : "";
  const width = access.bits_per_thread ? `${access.bits_per_thread} bits per thread` : "a tile, issued by one thread";
  const words = [whyNoFigures(access) ? "" : width, counted].filter(Boolean).join("; ");
  return h(
    "th",
    { scope: "rowgroup", rowspan: rows },
    operationLink(access.line, cost.by_operation ? memory.assembly : ""),
    ` ${access.operation} `,
    h(
      "div",
      { class: "faint" },
      pythonLink(capture, cost.place, cost.chain),
      access.argument ? ` ${access.argument}` : null,
      cost.loops ? `, in ${cost.loops === 1 ? "a loop" : `${cost.loops} loops`}` : null,
    ),
    words ? h("div", { class: "faint" }, words) : null,
  );
}

/** The rows of an operation: single programs, those that are alike as one, and the launch. */
function rowsOf(access: GlobalAccess): Row[] {
  const rows: Row[] = [];
  if (access.launch.executions[1] >= MOST)
    rows.push({ scope: "one execution", traffic: access.each, mark: markOf(access.each, access.programs) });
  const programs: [string[], Traffic][] = [];
  for (const [name, traffic] of [
    ["first", access.first],
    ["inner", access.inner],
    ["last", access.last],
  ] as const) {
    const before = programs.at(-1);
    if (before && isSame(before[1], traffic)) before[0].push(name);
    else programs.push([[name], traffic]);
  }
  for (const [names, traffic] of programs)
    rows.push({ scope: `${names.join(", ")} program`, traffic, mark: markOf(traffic, access.programs) });
  const basis = access.certainty === "exact" ? "" : `: ${access.basis}`;
  rows.push({ scope: "launch", traffic: access.launch, mark: `${WORDS[access.certainty]}${basis}` });
  return rows;
}

/** A program's figures are only marked as bounds where they are some. */
function markOf(traffic: Traffic, certainty: Certainty): string {
  const known = Object.values(traffic).every((span) => isKnown(span as Span));
  return WORDS[certainty === "range" && known ? "exact" : certainty];
}

function cells(traffic: Traffic, withLines: boolean, hasLanes: boolean): HTMLElement[] {
  const wasted = difference(traffic.units, traffic.ideal_units);
  const masked = traffic.masked_lanes;
  const spans: [string, Span][] = [
    ["executions", traffic.executions],
    ["bytes", traffic.bytes],
    ["units", traffic.units],
    ["ideal_units", traffic.ideal_units],
    ["wasted", wasted],
    ["least_units", traffic.least_units],
  ];
  if (withLines) spans.push(["lines", traffic.lines]);
  const made = spans.map(([name, span]) =>
    h("td", { class: `number${name === "wasted" && span[0] ? " wasted" : ""}`, "data-of": name }, spanText(span)),
  );
  const what = hasLanes || !masked[1] ? "" : " elements out of bounds";
  return [...made, h("td", { class: "number", "data-of": "masked_lanes" }, `${spanText(masked)}${what}`)];
}

/** Where the rows count no instructions, why, and how they come to. */
export function aboutInstructions(memory: Memory): string {
  if (!memory.assembly || memory.costs.every((cost) => cost.by_operation)) return "";
  const lead = `The capture does not map the instructions of its ${memory.assembly} to operations`;
  const [reason] = memory.reasons;
  return reason
    ? `${lead}: ${reason}.`
    : `${lead}: none are counted here, and widths are those of all operations on a line of Python. On the machine that ` +
        "recorded it, this command adds the map by another compile of the TTGIR:";
}

export const ways = (value: number): string => (value > 1 ? `${count(Math.round(100 * value) / 100)}-way` : "none");
