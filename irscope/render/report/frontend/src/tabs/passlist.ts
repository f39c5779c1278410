// The list of passes: by stage, with time bars and what each changed; LLVM's own passes folded behind a heading.
import { labelOf, type Capture, type Pass } from "../data/model";
import { fill, h, toggle } from "../dom";
import { milliseconds, plural, signed } from "../format";
import type { Change, Lives } from "../data/lives";
import { state } from "../state";
import { bar } from "./overview";

/** Letters from which on the filter is looked for among operations too. */
const LEAST_OF_A_NAME = 3;

export class PassList {
  readonly element = h("aside", { class: "pass-list", "aria-label": "Passes" });
  private readonly rows = h("div", { class: "rows", role: "region", tabindex: "0", "aria-label": "Passes" });
  private readonly filter = h("input", {
    type: "search",
    placeholder: "pass or operation (/)",
    "aria-label": "filter passes",
  });
  private readonly hide = h("span");
  private readonly foot = h("div", { class: "faint foot" });
  private capture: Capture | undefined;
  private lives: Lives | undefined;
  private visible: number[] = [];
  private chosen = -1;
  private readonly items = new Map<number, HTMLElement>();

  constructor(private readonly choose: (number: number) => void) {
    this.filter.value = state.text("filter");
    this.filter.addEventListener("input", () => state.set({ filter: this.filter.value }, true));
    this.element.append(h("div", { class: "bar-of-tools" }, this.filter, this.hide), this.rows, this.foot);
  }

  focusFilter(): void {
    this.filter.focus();
    this.filter.select();
  }

  show(capture: Capture, lives: Lives, chosen: number, changed: Set<string>): void {
    this.lives = lives;
    const redraw = capture !== this.capture || ["filter", "hide", "llvm"].some((name) => changed.has(name));
    this.capture = capture;
    if (this.filter.value !== state.text("filter") && document.activeElement !== this.filter)
      this.filter.value = state.text("filter");
    if (redraw) this.draw(capture);
    this.mark(chosen);
  }

  /** The visible pass that is `by` steps away. */
  next(from: number, by: number): number | undefined {
    const at = this.visible.indexOf(from);
    if (at >= 0) return this.visible[at + by];
    return by > 0 ? this.visible.find((number) => number > from) : this.visible.filter((number) => number < from).pop();
  }

  around(number: number): number[] {
    return [1, 2, -1].map((by) => this.next(number, by)).filter((found): found is number => found !== undefined);
  }

  reveal(): void {
    this.items.get(this.chosen)?.scrollIntoView({ block: "nearest" });
  }

  private mark(chosen: number): void {
    this.items.get(this.chosen)?.setAttribute("aria-selected", "false");
    this.chosen = chosen;
    const item = this.items.get(chosen);
    item?.setAttribute("aria-selected", "true");
    // Scrolling lays out the page: once all of it is drawn.
    requestAnimationFrame(() => this.reveal());
  }

  private draw(capture: Capture): void {
    this.items.clear();
    this.visible = [];
    fill(
      this.hide,
      toggle("changed only", "Hide the passes that changed nothing (h)", state.flag("hide"), (on) =>
        state.set({ hide: on }, true),
      ),
    );
    const kept = capture.passes
      .map((pass, number) => ({ pass, number }))
      .filter(({ pass, number }) => this.wanted(pass, number));
    const longest = Math.max(1, ...capture.passes.filter((pass) => pass.group === "mlir").map((pass) => pass.us ?? 0));
    const parts: Node[] = [];
    let heading = "";
    let list = h("div");
    for (const { pass, number } of kept) {
      const name = pass.group === "llvm" ? "LLVM" : pass.stage;
      if (name !== heading) parts.push(this.heading(capture, (heading = name)));
      if (pass.group === "llvm" && !state.flag("llvm")) continue;
      if (list.ariaLabel !== name) parts.push((list = h("div", { role: "listbox", "aria-label": name })));
      const item = this.item(pass, number, longest);
      this.items.set(number, item);
      this.visible.push(number);
      list.append(item);
    }
    fill(
      this.rows,
      parts.length ? parts : h("p", { class: "faint" }, capture.passes.length ? "No pass matches." : "No pass ran."),
    );
    const ran = capture.passes.filter((pass) => pass.outcome === "ran");
    const total = ran.reduce((sum, pass) => sum + (pass.us ?? 0), 0);
    fill(
      this.foot,
      `${plural(ran.length, "pass")}, ${ran.filter((pass) => pass.changed).length} changed the IR, ${milliseconds(total)}`,
    );
  }

  private heading(capture: Capture, name: string): HTMLElement {
    const own = capture.passes.filter((pass) =>
      name === "LLVM" ? pass.group === "llvm" : pass.group === "mlir" && pass.stage === name,
    );
    const total = own.reduce((sum, pass) => sum + (pass.us ?? 0), 0);
    const text = `${name} · ${plural(own.length, "pass")}${total ? ` · ${milliseconds(total)}` : ""}`;
    if (name !== "LLVM") return h("h2", null, text);
    const open = state.flag("llvm");
    return h(
      "h2",
      null,
      h(
        "button",
        {
          type: "button",
          class: "link",
          "aria-expanded": String(open),
          onclick: () => state.set({ llvm: !open }, true),
        },
        `${open ? "▾" : "▸"} ${text}`,
      ),
    );
  }

  private item(pass: Pass, number: number, longest: number): HTMLElement {
    const what =
      pass.outcome !== "ran" ? pass.outcome : pass.changed ? "changed" : pass.changed === null ? "unknown" : "same";
    const sign = { changed: "●", same: "", unknown: "?", skipped: "⊘", failed: "✗" }[what];
    const [lines, operations] = pass.counts ?? [];
    const found = this.found(number);
    const change = found ? [signed(found.made), signed(-found.removed)].filter(Boolean).join(" ") : undefined;
    const item = h(
      "div",
      {
        role: "option",
        class: `item ${what}`,
        "aria-selected": "false",
        title: `${labelOf(pass)} ${pass.argument ?? ""}\n${what}${found ? `\nmade ${found.made}, removed ${found.removed}: ${found.names.join(", ")}` : ""}`,
        onclick: () => this.choose(number),
      },
      h("span", { class: "sign" }, sign),
      h(
        "span",
        { class: "name" },
        pass.name,
        pass.n > 1 ? h("span", { class: "faint" }, `#${pass.n}`) : null,
        pass.scope ? h("span", { class: "faint" }, ` ${pass.scope}`) : null,
      ),
      h("span", { class: found ? "change found" : "change" }, change ?? signed(operations ?? lines)),
      h(
        "span",
        { class: "time" },
        bar(Math.sqrt((pass.us ?? 0) / longest), `${milliseconds(pass.us)} (bars grow with the square root)`),
        h("span", { class: "ms" }, pass.us === undefined ? "" : milliseconds(pass.us).replace(" ms", "")),
      ),
    );
    return item;
  }

  private wanted(pass: Pass, number: number): boolean {
    if (state.flag("hide") && pass.outcome === "ran" && pass.changed === false) return false;
    if (this.found(number)) return true;
    const text = `${labelOf(pass)} ${pass.argument ?? ""} ${pass.outcome}`.toLowerCase().replaceAll("-", "_");
    return words().every((word) => text.includes(word));
  }

  /** The operations that a pass made or removed, where the filter is the beginning of their name. */
  private found(number: number): Change | undefined {
    const [word, ...others] = words();
    return word !== undefined && word.length >= LEAST_OF_A_NAME && !others.length
      ? this.lives?.changes(number, word)
      : undefined;
  }
}

function words(): string[] {
  return state.text("filter").toLowerCase().replaceAll("-", "_").split(/\s+/).filter(Boolean);
}
