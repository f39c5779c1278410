// Starts the viewer: the header, the tabs, and the way from the URL's fragment to what is shown.
import { currentCapture, type App, type Tab } from "./app";
import { labelOf } from "./data/model";
import { Payload } from "./data/payload";
import { hideTip } from "./code/tip";
import { fill, h, select } from "./dom";
import { Keys } from "./keys";
import { state } from "./state";
import { CompareTab } from "./tabs/compare";
import { GraphTab } from "./tabs/graph";
import { LayoutsTab } from "./tabs/layouts";
import { MemoryTab } from "./tabs/memory";
import { MovieTab } from "./tabs/movie";
import { OverviewTab } from "./tabs/overview";
import { PassesTab } from "./tabs/passes";
import { ResultsTab } from "./tabs/results";
import { StagesTab } from "./tabs/stages";
import { TimeTab } from "./tabs/time";
import { themeButton, toggleTheme } from "./theme";

const app: App = { data: new Payload(), keys: new Keys() };
const makers: [string, string, (app: App) => Tab][] = [
  ["overview", "Overview", (app) => new OverviewTab(app)],
  ["passes", "Passes", (app) => new PassesTab(app)],
  ["stages", "Stages", (app) => new StagesTab(app)],
  ["layouts", "Layouts", (app) => new LayoutsTab(app)],
  ["memory", "Memory", (app) => new MemoryTab(app)],
  ["time", "Time", (app) => new TimeTab(app)],
  ["movie", "Movie", (app) => new MovieTab(app)],
  ["graph", "Graph", (app) => new GraphTab(app)],
  ["compare", "Compare", (app) => new CompareTab(app)],
];
const { results } = app.data.index;
if (results) makers.unshift(["results", "Results", (app) => new ResultsTab(app, results)]);
const tabs = new Map<string, Tab>();
const links = new Map<string, HTMLElement>();
const stage = h("main", { id: "view" });
const heading = h("h1", { class: "offscreen" });
const picker = h("span", { class: "picker" });
let front: Tab | undefined;

function open(name: string): void {
  state.set({ tab: name === "overview" ? null : name });
}

function tabNamed(name: string): Tab {
  const [key, , make] = makers.find(([key]) => key === name) ?? makers.find(([key]) => key === "overview")!;
  let tab = tabs.get(key);
  if (!tab) tabs.set(key, (tab = make(app)));
  return tab;
}

function show(changed: Set<string>): void {
  const tab = tabNamed(state.text("tab", "overview"));
  const isNew = tab !== front;
  if (isNew) {
    front = tab;
    hideTip();
    stage.replaceChildren(tab.element);
    stage.scrollTop = 0;
    for (const [name, link] of links) {
      link.setAttribute("aria-selected", String(name === tab.name));
      link.tabIndex = name === tab.name ? 0 : -1;
    }
    tab.element.setAttribute("role", "tabpanel");
    links.get(tab.name)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    // Two captures are chosen there.
    picker.hidden = tab.name === "compare" && app.data.captures.length > 1;
  }
  if (changed.has("c") || isNew) drawPicker();
  tab.update(changed);
  if (isNew) tab.enter?.();
  const title = `${tab.subject?.() ?? currentCapture(app).kernel} · ${tab.title}`;
  document.title = `${title} · irscope`;
  fill(heading, title);
}

function drawPicker(): void {
  const captures = app.data.captures;
  const chosen = currentCapture(app);
  if (captures.length < 2) {
    fill(
      picker,
      h("strong", null, chosen.kernel),
      h("span", { class: "faint" }, `${chosen.target} · ${chosen.id.slice(0, 8)}`),
    );
    return;
  }
  const options = captures.map((one, number): [string, string] => [
    String(number + 1),
    `${number + 1}. ${one.kernel} · ${one.differsIn || one.target}${one.status === "failed" ? " · FAILED" : ""}`,
  ]);
  fill(
    picker,
    select("capture", options, String(captures.indexOf(chosen) + 1), (value) => chooseCapture(Number(value))),
  );
}

/** Looks at another capture, at the same pass of it. */
function chooseCapture(number: number): void {
  const { captures } = app.data;
  const next = (number - 1 + captures.length) % captures.length;
  const pass = state.number("pass") ? currentCapture(app).passes[state.number("pass") - 1] : undefined;
  const at = pass ? captures[next]!.passes.findIndex((one) => labelOf(one) === labelOf(pass)) : -1;
  state.set({ c: next ? next + 1 : null, pass: at < 0 ? null : at + 1, at: null, node: null });
}

/** Moves along the tabs, as the arrow keys do in a list of tabs. */
function walk(event: KeyboardEvent): void {
  const names = makers.map(([name]) => name);
  const at = names.indexOf(front?.name ?? "overview");
  const steps: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: names.length - 1 };
  const to = steps[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  const name = names[(to + names.length) % names.length]!;
  open(name);
  links.get(name)?.focus();
}

function start(): void {
  const nav = h("nav", { role: "tablist", "aria-label": "Views", onkeydown: walk });
  makers.forEach(([name, title], index) => {
    const link = h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": "view",
        title: `${title} (${index + 1})`,
        onclick: () => open(name),
      },
      title,
    );
    links.set(name, link);
    nav.append(link);
  });
  const help = h(
    "button",
    { type: "button", title: "Keys (?)", "aria-label": "Keys", onclick: () => app.keys.help() },
    "?",
  );
  fill(
    document.getElementById("app")!,
    h(
      "header",
      null,
      heading,
      h("span", { class: "brand" }, "irscope"),
      picker,
      nav,
      h("span", { class: "room" }),
      themeButton(),
      help,
    ),
    stage,
  );
  app.keys.always(
    ...makers.map(([name, title], index) => ({ keys: [String(index + 1)], text: title, run: () => open(name) })),
    { keys: ["["], text: "The capture before", run: () => chooseCapture(state.number("c", 1) - 1) },
    { keys: ["]"], text: "The next capture", run: () => chooseCapture(state.number("c", 1) + 1) },
    { keys: ["t"], text: "Light, dark, or as the system has it", run: toggleTheme },
    { keys: ["?"], text: "This help", run: () => app.keys.help() },
  );
  state.onChange(show);
  show(new Set());
  document.documentElement.dataset["ready"] = "1";
}

start();
