// Starts the viewer: the header, the tabs, and the way from the URL's fragment to what is shown.
import { currentCapture, type App, type Tab } from "./app";
import { Payload } from "./data/payload";
import { hideTip } from "./code/tip";
import { fill, h, select } from "./dom";
import { Keys } from "./keys";
import { state } from "./state";
import { CompareTab } from "./tabs/compare";
import { GraphTab } from "./tabs/graph";
import { LayoutsTab } from "./tabs/layouts";
import { MemoryTab } from "./tabs/memory";
import { OverviewTab } from "./tabs/overview";
import { PassesTab } from "./tabs/passes";
import { StagesTab } from "./tabs/stages";
import { themeButton, toggleTheme } from "./theme";

const app: App = { data: new Payload(), keys: new Keys() };
const makers: [string, string, (app: App) => Tab][] = [
  ["overview", "Overview", (app) => new OverviewTab(app)],
  ["passes", "Passes", (app) => new PassesTab(app)],
  ["stages", "Stages", (app) => new StagesTab(app)],
  ["layouts", "Layouts", (app) => new LayoutsTab(app)],
  ["memory", "Memory", (app) => new MemoryTab(app)],
  ["graph", "Graph", (app) => new GraphTab(app)],
  ["compare", "Compare", (app) => new CompareTab(app)],
];
const tabs = new Map<string, Tab>();
const links = new Map<string, HTMLElement>();
const stage = h("main", { id: "view" });
const picker = h("span", { class: "picker" });
let front: Tab | undefined;

function open(name: string): void {
  state.set({ tab: name === "overview" ? null : name });
}

function tabNamed(name: string): Tab {
  const [key, , make] = makers.find(([key]) => key === name) ?? makers[0]!;
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
    for (const [name, link] of links) link.setAttribute("aria-selected", String(name === tab.name));
  }
  if (changed.has("c") || isNew) drawPicker();
  tab.update(changed);
  if (isNew) tab.enter?.();
  document.title = `${currentCapture(app).kernel} · ${tab.title} · irscope`;
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

function chooseCapture(number: number): void {
  const count = app.data.captures.length;
  state.set({
    c: ((number - 1 + count) % count) + 1 === 1 ? null : ((number - 1 + count) % count) + 1,
    pass: null,
    at: null,
  });
}

function start(): void {
  const nav = h("nav", { role: "tablist" });
  makers.forEach(([name, title], index) => {
    const link = h(
      "button",
      { type: "button", role: "tab", title: `${title} (${index + 1})`, onclick: () => open(name) },
      title,
    );
    links.set(name, link);
    nav.append(link);
  });
  const help = h("button", { type: "button", title: "Keys (?)", onclick: () => app.keys.help() }, "?");
  fill(
    document.getElementById("app")!,
    h(
      "header",
      null,
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
