// Overview: what was compiled, what came out, and what to look at first.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { copyButton, command } from "../copy";
import type { Capture, Finding, Pair, Pass } from "../data/model";
import { labelOf } from "../data/model";
import { button, fill, h, table } from "../dom";
import { bytes, count, fileName, milliseconds, percent, plural, resourceTitle, resourceValue, shown } from "../format";
import { state } from "../state";
import { captureTable } from "./captures";
import { poster } from "./poster";
import { pythonLink } from "./sources";

const COMMON = ["num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "warp_size"];

export class OverviewTab implements Tab {
  readonly name = "overview";
  readonly title = "Overview";
  readonly element = h("section", { class: "overview", "aria-label": "Overview" });

  constructor(private readonly app: App) {}

  enter(): void {
    this.app.keys.forTab("Overview", [{ keys: ["p"], text: "Print", run: () => print() }]);
  }

  update(changed: Set<string>): void {
    // The table of captures redraws itself: its filter must keep the cursor.
    if (changed.size && [...changed].every((name) => name === "find" || name === "sort")) return;
    const capture = currentCapture(this.app);
    fill(
      this.element,
      this.app.data.captures.length > 1 ? captureTable(this.app) : null,
      this.head(capture),
      capture.failure ? failureBox(capture) : null,
      poster(this.app),
      h(
        "div",
        { class: "cards" },
        card("Findings", findings(capture), evaluated(this.app, capture)),
        card("Resources", resources(capture)),
        card("Stages", stages(this.app, captureNumber(this.app))),
        card("Signature and options", inputs(capture)),
        card("Costliest passes", slowest(capture)),
        card("Versions", versions(capture)),
      ),
      capture.notes.length
        ? h(
            "div",
            { class: "notes" },
            capture.notes.map((note) => h("p", null, note)),
          )
        : null,
    );
  }

  private head(capture: Capture): HTMLElement {
    const again = capture.environment["command"];
    return h(
      "div",
      { class: "headline" },
      h("h1", null, capture.kernel),
      h("span", { class: "chip" }, capture.target),
      h("span", { class: `chip ${capture.status}` }, capture.status),
      capture.plan ? h("span", { class: "chip plan" }, capture.plan) : null,
      h("span", { class: "faint" }, `${fileName(capture.file)}:${capture.line} · ${capture.id}`),
      h("span", { class: "room" }),
      capture.plan ? copyButton("plan", "Copy the plan", () => capture.plan) : null,
      typeof again === "string" && again
        ? copyButton("command", "Copy the command that recorded it", () => again)
        : null,
      copyButton("show", "Copy the command that shows it", () => command("show", capture.id)),
      button("print", "Print this overview (p)", () => print()),
      h(
        "span",
        { class: "faint screen" },
        this.app.data.captures.length > 1 ? `capture ${captureNumber(this.app) + 1}` : "",
      ),
    );
  }
}

export function card(title: string, ...content: (Node | null)[]): HTMLElement {
  return h("section", { class: "card" }, h("h2", null, title), content);
}

export function failureBox(capture: Capture): HTMLElement {
  const failure = capture.failure!;
  return h(
    "div",
    { class: "failure", role: "alert" },
    h("h2", null, `The compile ${failure.verdict}`),
    h("pre", null, failure.message),
    failure.diagnostics
      ? h("details", { open: true }, h("summary", null, "Diagnostics"), h("pre", null, failure.diagnostics))
      : null,
    failure.pass_label
      ? button("The IR before it", "Open the pass", () => openPass(capture, failure.pass_label))
      : null,
  );
}

export function openPass(capture: Capture, label: string): void {
  const number = capture.passes.findIndex((pass) => labelOf(pass) === label);
  if (number >= 0) state.set({ tab: "passes", pass: number + 1 });
}

function findings(capture: Capture): HTMLElement {
  if (!capture.findings.length) return h("p", { class: "faint" }, "Nothing stands out.");
  return h(
    "ul",
    { class: "findings" },
    capture.findings.map((one) => h("li", { class: one.level }, finding(capture, one))),
  );
}

/** What to run for the findings that a page of many captures leaves out, like its movies. */
function evaluated(app: App, capture: Capture): HTMLElement | null {
  if (capture.failure || app.data.movie(captureNumber(app))) return null;
  const more = command("why", capture.id);
  return h(
    "p",
    { class: "faint" },
    "Without those of addresses and predicted times, which ",
    h("code", null, more),
    " finds.",
  );
}

function finding(capture: Capture, one: Finding): (Node | string)[] {
  const place = one.place ? ["  ", pythonLink(capture, one.place, [])] : [];
  return [one.code ? h("b", null, `${one.code} `) : "", statement(capture, one), ...place];
}

function statement(capture: Capture, one: Finding): Node | string {
  if (one.pass) return button(one.text, "Open the pass", () => openPass(capture, one.pass!), { class: "link" });
  if (!one.stage) return one.text;
  const at = one.line ? `${one.stage}:${one.line}` : null;
  return button(one.text, "Open the line", () => state.set({ tab: "stages", panes: `py0,${one.stage}`, at }), {
    class: "link",
  });
}

function resources(capture: Capture): HTMLElement {
  const rows = Object.entries(capture.resources).map(([name, value]) => [
    resourceTitle(name.replace(/_bytes$/, "")),
    `${resourceValue(name, value)}${name.endsWith("_bytes") ? " B" : ""}`,
  ]);
  const families = Object.entries(capture.families).map(([name, value]) => [name, count(value)]);
  return h(
    "div",
    null,
    rows.length ? occupancy(capture) : h("p", { class: "faint" }, "No binary: no resources are known."),
    h("div", { class: "columns" }, table([], rows, { class: "figures" }), table([], families, { class: "figures" })),
  );
}

function occupancy(capture: Capture): HTMLElement | null {
  const found = capture.occupancy;
  if (!found) return null;
  const meter = h("meter", {
    min: 0,
    max: 1,
    low: 0.25,
    high: 0.5,
    optimum: 1,
    value: found.fraction,
    "aria-label": "occupancy",
  });
  const others = found.limits.map(([cause, blocks]) => `${cause}: ${blocks} CTAs`).join("\n");
  return h("p", { title: others }, "Occupancy ", meter, ` ${percent(found.fraction)}: ${found.text}.`);
}

function operations(app: App, capture: number, stage: string): string {
  const total = [...app.data.operations(capture, stage).values()].reduce((sum, one) => sum + one, 0);
  return total ? `${count(total)} ops` : "";
}

function stages(app: App, number: number): HTMLElement {
  const capture = app.data.captures[number]!;
  const longest = Math.max(1, ...capture.stages.map((row) => row.us ?? 0));
  const rows = capture.stages.map((row) => [
    row.text === undefined
      ? row.stage
      : button(row.stage, row.title, () => state.set({ tab: "stages", panes: `py0,${row.stage}` }), { class: "link" }),
    row.lines === null ? bytes(row.bytes) : plural(row.lines, "line"),
    row.text === undefined ? "" : operations(app, number, row.stage),
    row.us === null
      ? ""
      : h(
          "span",
          { class: "time" },
          bar(row.us / longest, `time, of the longest stage ${percent(row.us / longest)}`),
          milliseconds(row.us),
        ),
  ]);
  const whole =
    capture.compileUs === null
      ? null
      : h("p", { class: "faint" }, `${milliseconds(capture.compileUs)} in all, recording included.`);
  if (!rows.length) return h("p", { class: "faint" }, "The compile made no IR.");
  return h("div", null, table([], rows, { class: "figures" }), whole);
}

/** A bar; what it says stands in `label`, and as a number beside it. */
export function bar(share: number, label: string): HTMLElement {
  const made = h("span", { class: "bar", role: "img", "aria-label": label, title: label });
  made.style.setProperty("--share", String(Math.max(0, Math.min(1, share))));
  return made;
}

function inputs(capture: Capture): HTMLElement {
  const common = COMMON.map((name) => capture.options.find(([key]) => key === name)).filter(
    (pair) => pair && pair[1] !== null,
  );
  const rest = capture.options.filter((pair) => !common.includes(pair));
  const attributes = new Map(capture.attributes.map(([name, value]) => [name, String(value)]));
  const signature = capture.signature.map(([name, kind]) => [
    h("code", null, name),
    h("code", null, String(kind)),
    kind === "constexpr"
      ? h("code", null, shown(capture.constants.find(([key]) => key === name)?.[1]))
      : (attributes.get(name) ?? ""),
  ]);
  return h(
    "div",
    null,
    table([], signature, { class: "figures" }),
    table(
      [],
      [
        ...(common as Pair[]).map(([name, value]) => [name, shown(value)]),
        ["grid", capture.grid?.join(" × ") ?? "not launched"],
      ],
      {
        class: "figures",
      },
    ),
    h(
      "details",
      null,
      h("summary", null, `${rest.length} more options`),
      table(
        [],
        rest.map(([name, value]) => [name, shown(value)]),
      ),
    ),
    capture.autotuning ? h("p", null, `Configuration ${shown(capture.autotuning["config"])}`) : null,
  );
}

function slowest(capture: Capture): HTMLElement {
  const rows = [...capture.passes]
    .filter((pass) => pass.us)
    .sort((a, b) => b.us! - a.us!)
    .slice(0, 6);
  const longest = rows[0]?.us ?? 1;
  const ran = capture.passes.filter((pass) => pass.outcome === "ran");
  const off = capture.passes.length - ran.length;
  const line = (pass: Pass) => [
    button(labelOf(pass), "Open the pass", () => openPass(capture, labelOf(pass)), { class: "link" }),
    h(
      "span",
      { class: "time" },
      bar(pass.us! / longest, `time, of the costliest pass ${percent(pass.us! / longest)}`),
      milliseconds(pass.us),
    ),
  ];
  const changed = ran.filter((pass) => pass.changed).length;
  if (!capture.passes.length) return h("p", { class: "faint" }, "No pass ran.");
  const text = `${plural(ran.length, "pass")} ran, ${changed} changed the IR${off ? `, ${off} did not run` : ""}.`;
  return h("div", null, table([], rows.map(line), { class: "figures" }), h("p", { class: "faint" }, text));
}

/** The fields of the environment that are lists of pairs. */
const PAIRS = ["tools", "variables", "parts"];

function versions(capture: Capture): HTMLElement {
  const environment = Object.entries(capture.environment).filter(
    ([name, value]) => value && !PAIRS.includes(name) && name !== "command",
  );
  const lists = (name: string) => (capture.environment[name] as Pair[] | undefined) ?? [];
  const rows = [...environment, ...lists("tools"), ...lists("variables")].map(([name, value]) => [
    name.replace("_version", ""),
    shown(value),
  ]);
  // A digest of each file that Triton is made of: `irscope show --json` has them, and a comparison names what differs.
  if (lists("parts").length) rows.push(["contents", `${plural(lists("parts").length, "file")}, digested`]);
  return table([], rows, { class: "figures" });
}
