// Stages: two or three texts next to each other; a line lights up where it came from and what became of it.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { copyButton, command } from "../copy";
import { SIGNS_MEAN } from "../data/annotations";
import { Links, type Near } from "../data/links";
import type { Capture } from "../data/model";
import { button, fill, h, select, toggle } from "../dom";
import type { Key } from "../keys";
import { state } from "../state";
import { hideTip } from "../code/tip";
import { sourcesOf } from "./sources";
import { StagePane, type Source } from "./stagepane";

const HOVER_MS = 40;

export class StagesTab implements Tab {
  readonly name = "stages";
  readonly title = "Stages";
  readonly element = h("section", { class: "stages", "aria-label": "Stages" });
  private readonly bar = h("div", { class: "bar-of-tools" });
  private readonly holder = h("div", { class: "panes" });
  private panes: StagePane[] = [];
  private shown = "";
  private links: Links | undefined;
  private active = 0;
  private timer = 0;

  constructor(private readonly app: App) {
    this.element.append(this.bar, this.holder);
  }

  enter(): void {
    this.app.keys.forTab("Stages", this.keys());
    this.follow(true);
  }

  update(): void {
    const capture = currentCapture(this.app);
    const ids = this.ids(capture);
    const key = `${captureNumber(this.app)} ${ids.join(",")} ${state.flag("loc")} ${state.flag("bare")}`;
    if (key !== this.shown) {
      this.shown = key;
      this.build(capture, ids);
    }
    this.follow(true);
  }

  private ids(capture: Capture): string[] {
    const known = sourcesOf(capture).map((source) => source.id);
    const named = state
      .text("panes")
      .split(",")
      .filter((id) => known.includes(id));
    if (named.length) return named.slice(0, 4);
    const last = known.findLast((id) => ["sass", "amdgcn", "ptx", "llir"].includes(id));
    return ["py0", "ttgir", last ?? ""]
      .filter((id) => known.includes(id))
      .concat(known.slice(0, 2))
      .slice(0, 3)
      .filter((id, at, all) => all.indexOf(id) === at);
  }

  private build(capture: Capture, ids: string[]): void {
    for (const pane of this.panes) pane.destroy();
    this.links = new Links(this.app.data.locations(captureNumber(this.app)));
    const sources = sourcesOf(capture);
    this.panes = ids.map((id, index) => {
      const source = sources.find((one) => one.id === id)!;
      return new StagePane(this.app, capture, source, this.links!, {
        hover: (line) => this.hover(index, line),
        pin: (line) => this.pin(index, line),
      });
    });
    fill(
      this.holder,
      this.panes.map((pane, index) => {
        const choose = select(
          "text",
          sources.map((one): [string, string] => [one.id, one.title]),
          ids[index]!,
          (id) => this.replace(ids, index, id),
        );
        const close = ids.length > 1 ? button("×", "Close this pane", () => this.replace(ids, index, null)) : null;
        pane.element.addEventListener("focusin", () => (this.active = index));
        fill(
          pane.head,
          choose,
          pane.info,
          h("span", { class: "room" }),
          copyButton("text", "Copy this text", () => pane.lines.join("\n")),
          close,
        );
        return pane.element;
      }),
    );
    const registers = this.app.data.annotations(captureNumber(this.app));
    const add = sources.filter((one) => !ids.includes(one.id));
    fill(
      this.bar,
      ids.length < 4 && add.length
        ? select(
            "add a pane",
            [["", "add a pane"], ...add.map((one): [string, string] => [one.id, one.title])],
            "",
            (id) => id && state.set({ panes: [...ids, id].join(",") }),
          )
        : null,
      ...this.presets(sources),
      toggle("locations", "Show locations (o)", state.flag("loc"), (on) => state.set({ loc: on }, true)),
      registers
        ? toggle(
            "registers",
            `Live registers next to ${registers.code.stage} and Python (r)`,
            !state.flag("bare"),
            (on) => state.set({ bare: !on }, true),
          )
        : null,
      registers && !state.flag("bare") ? h("span", { class: "faint" }, SIGNS_MEAN) : null,
      h(
        "span",
        { class: "faint" },
        "Hover a line to see where it came from; click keeps it (Esc lets go). Click a value for its definition and uses.",
      ),
      h("span", { class: "room" }),
      copyButton("command", "Copy the command that prints these stages", () => {
        const stages = ids.filter((id) => !id.startsWith("py"));
        const line = state.text("at").startsWith("py0:") ? ["--lines", state.text("at").slice(4)] : [];
        return command("show", capture.id, "--stage", stages.join(",") || "all", ...line);
      }),
    );
    this.active = 0;
    requestAnimationFrame(() => this.panes.forEach((pane) => pane.first()));
  }

  private presets(sources: Source[]): HTMLElement[] {
    const has = (id: string) => sources.some((one) => one.id === id);
    const lowest = has("sass") ? "sass" : has("amdgcn") ? "amdgcn" : "ptx";
    const rows = [
      ["py0", "ttgir", lowest],
      ["ttir", "ttgir"],
      ["ttgir", "llir"],
      ["llir", "ptx"],
      ["ptx", lowest],
    ];
    return rows
      .filter((ids) => ids.every(has) && new Set(ids).size === ids.length)
      .map((ids) =>
        button(ids.map((id) => (id === "py0" ? "Python" : id)).join(" · "), "Show these", () =>
          state.set({ panes: ids.join(",") }),
        ),
      );
  }

  private replace(ids: string[], index: number, id: string | null): void {
    const next = ids.flatMap((old, at) => (at === index ? (id === null ? [] : [id]) : [old]));
    state.set({ panes: next.join(",") });
  }

  private hover(index: number, line: number): void {
    clearTimeout(this.timer);
    if (state.text("at")) return;
    this.timer = window.setTimeout(() => this.light(index, line, true), line ? HOVER_MS : 3 * HOVER_MS);
  }

  private pin(index: number, line: number): void {
    this.active = index;
    const at = `${this.panes[index]!.source.id}:${line}`;
    state.set({ at: state.text("at") === at ? null : at });
  }

  /** Lights up what the fragment names. */
  private follow(scroll: boolean): void {
    const [id, line] = state.text("at").split(":");
    const index = this.panes.findIndex((pane) => pane.source.id === id);
    if (index < 0) {
      this.light(0, 0, false);
      return;
    }
    this.light(index, Number(line), true);
    if (scroll) this.panes[index]?.reveal(Number(line));
  }

  private light(index: number, line: number, scroll: boolean): void {
    const from = this.panes[index];
    const links = this.links;
    if (!from || !links) return;
    let near: Near | null = null;
    let frames: { file: string; line: number }[] = [];
    if (line > 0) {
      if (from.source.kind === "python") {
        near = links.nearLine(from.source.file, line);
        frames = [{ file: from.source.file, line }];
      } else {
        near = links.nearTo(from.source.id, line);
        frames = links.frames(links.chainAt(from.source.id, line));
      }
    }
    this.panes.forEach((pane, at) => pane.light(near, frames, at === index ? line : 0, scroll && at !== index));
  }

  private step(by: number): void {
    const pane = this.panes[this.active];
    if (!pane) return;
    const [id, line] = state.text("at").split(":");
    const from = id === pane.source.id ? Number(line) : by > 0 ? 0 : pane.lines.length + 1;
    const next = pane.nextLine(from, by);
    if (next) state.set({ at: `${pane.source.id}:${next}` });
  }

  private keys(): Key[] {
    const focus = (by: number) => () => {
      this.active = (this.active + by + this.panes.length) % this.panes.length;
      this.panes[this.active]?.focus();
    };
    return [
      { keys: ["j", "ArrowDown"], text: "The next line that comes from somewhere", run: () => this.step(1) },
      { keys: ["k", "ArrowUp"], text: "The line before", run: () => this.step(-1) },
      { keys: ["l", "ArrowRight"], text: "The pane to the right", run: focus(1) },
      { keys: ["h", "ArrowLeft"], text: "The pane to the left", run: focus(-1) },
      { keys: ["o"], text: "Locations", run: () => state.set({ loc: !state.flag("loc") }, true) },
      { keys: ["r"], text: "Live registers", run: () => state.set({ bare: !state.flag("bare") }, true) },
      { keys: ["Escape"], text: "Let go of the line", run: () => this.letGo() },
    ];
  }

  private letGo(): void {
    hideTip();
    for (const pane of this.panes) pane.forget();
    state.set({ at: null });
  }
}
