// Passes: the pipeline on the left, what the chosen pass did on the right.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { definitions, shownLines, shownText } from "../code/aliases";
import { Pane } from "../code/pane";
import { nameAt } from "../code/values";
import { copy, toast } from "../copy";
import { differs, type Diff } from "../data/diff";
import { hasDiff, labelOf, textOf, type Capture, type Kind, type Pass } from "../data/model";
import { bringToFront, isBehind, putBehind } from "../diff/behind";
import { Deck } from "../diff/deck";
import type { Shown } from "../diff/rows";
import type { Place } from "../diff/view";
import { fill, h } from "../dom";
import type { Key } from "../keys";
import { state } from "../state";
import { lifeOf } from "./life";
import { failureBox } from "./overview";
import { commandOf, PassHead, toggles } from "./passhead";
import { PassList } from "./passlist";

const PAUSE_MS = 500;
/** How long what was shown stays while the next is waited for: a blank between two pictures would flicker. */
const HOLD_MS = 80;
/** Changes that are compared before they are asked for: the more, the more memory. */
const MOST_READ_AHEAD = 60;

export class PassesTab implements Tab {
  readonly name = "passes";
  readonly title = "Passes";
  readonly element = h("section", { class: "passes split-view", "aria-label": "Passes" });
  private readonly list: PassList;
  private readonly head = new PassHead({
    textAfter: (pass) => this.text(pass).join("\n"),
    diff: () => this.deck.front.text(),
    lines: (text) => this.app.data.lines(text),
  });
  private readonly deck = new Deck({
    click: (text, column, lines, place) => this.clicked(text, column, lines, place),
  });
  /** What stands in place of a diff: a remark, and the text where there is one. */
  private readonly remark = h("div");
  private readonly holder = h("div", { class: "pane alone" });
  private readonly whole = h("div", { class: "whole" }, this.remark, this.holder);
  private readonly pane = new Pane(this.holder, {
    click: (row) => this.showLife(this.shownText, this.numbers[row - 1] ?? 0),
  });
  private shownText: number | undefined;
  private textLook = "";
  private numbers: number[] = [];
  private readonly later = h("p", { class: "remark later", role: "status" });
  private readonly body = h("div", { class: "pass-body" }, this.deck.element, this.whole, this.later);
  private readonly right = h("div", { class: "pass" }, this.head.element, this.body);
  /** What is shown: the pass that is chosen, the one before it for a moment, or that the pass is waited for. */
  private shows: "pass" | "before" | "wait" = "wait";
  private patience = 0;
  private waiting = 0;
  private pause = 0;

  constructor(private readonly app: App) {
    this.list = new PassList((number) => this.choose(number));
    this.element.append(this.list.element, this.right);
    this.app.data.ahead.onAnswer = () => this.answered();
  }

  enter(): void {
    this.app.keys.forTab("Passes", this.keys());
    this.list.reveal();
  }

  update(changed: Set<string>): void {
    const capture = currentCapture(this.app);
    this.list.show(capture, this.app.data.lives(captureNumber(this.app)), this.number(capture), changed);
    this.draw(capture);
  }

  private number(capture: Capture): number {
    const chosen = state.number("pass") - 1;
    if (chosen >= 0 && chosen < capture.passes.length) return chosen;
    const failed = capture.passes.findIndex((pass) => pass.outcome === "failed");
    return failed >= 0
      ? failed
      : Math.max(
          0,
          capture.passes.findIndex((pass) => pass.changed),
        );
  }

  private choose(number: number): void {
    state.set({ pass: number + 1 });
  }

  private draw(capture: Capture): void {
    const number = this.number(capture);
    const pass = capture.passes[number];
    if (!pass) {
      this.settle();
      this.head.showNone(
        capture.status === "failed" ? "The compile failed before any pass ran." : "No passes were recorded.",
      );
      this.bring(this.whole);
      this.holder.hidden = true;
      fill(this.remark, capture.failure ? failureBox(capture) : null);
      return;
    }
    if (this.app.data.isReady(pass, state.flag("loc"))) this.drawPass(capture, pass);
    else this.wait(capture, pass);
    this.readAhead(capture, number);
  }

  private drawPass(capture: Capture, pass: Pass): void {
    this.settle();
    const diff = this.app.data.passDiff(pass);
    const isDiff = differs(diff);
    this.head.show(capture, pass, diff);
    this.bring(isDiff ? this.deck.element : this.whole);
    if (isDiff) this.deck.show(diff, ...this.looks(diff));
    else this.drawText(capture, pass, diff);
  }

  /** Leaves what is shown for a moment, then says what is waited for. */
  private wait(capture: Capture, pass: Pass): void {
    this.right.ariaBusy = "true";
    if (this.shows === "pass") {
      this.shows = "before";
      this.patience = setTimeout(() => {
        const now = currentCapture(this.app);
        const chosen = now.passes[this.number(now)];
        if (chosen) this.sayWait(now, chosen);
      }, HOLD_MS);
    } else if (this.shows === "wait") this.sayWait(capture, pass);
  }

  private sayWait(capture: Capture, pass: Pass): void {
    this.shows = "wait";
    this.head.show(capture, pass, undefined);
    fill(this.later, hasDiff(pass) ? "Comparing the IR before and after this pass …" : "Unpacking the IR …");
    this.bring(this.later);
  }

  private settle(): void {
    clearTimeout(this.patience);
    this.shows = "pass";
    if (!this.right.ariaBusy) return;
    this.right.ariaBusy = null;
    fill(this.later);
  }

  /** Draws what was waited for, once it is there: the pass that is chosen by then, or else the neighbours. */
  private answered(): void {
    if (!this.element.isConnected) return;
    const capture = currentCapture(this.app);
    const number = this.number(capture);
    const pass = capture.passes[number];
    if (!pass) return;
    if (this.shows === "pass") this.readAhead(capture, number);
    else this.draw(capture);
  }

  /** Brings the diff to the front, or what stands in place of one. */
  private bring(front: HTMLElement): void {
    // What was looked at may have been scrolled.
    if (front !== this.whole && !isBehind(this.whole)) this.textLook = "";
    for (const one of [this.deck.element, this.whole, this.later]) {
      if (one === front) bringToFront(one);
      else if (!isBehind(one)) putBehind(one);
    }
  }

  /** How a diff is drawn: the name of that, what is shown of its lines, and whether in two panes. */
  private looks(diff: Diff): [string, () => Shown, boolean] {
    const look = toggles();
    const split = state.flag("side");
    return [JSON.stringify([look, split]), () => shownLines(diff, look), split];
  }

  private text(pass: Pass): string[] {
    const number = textOf(pass);
    return number === undefined ? [] : this.app.data.lines(number);
  }

  private drawText(capture: Capture, pass: Pass, diff: Diff | undefined): void {
    fill(
      this.remark,
      pass.outcome === "failed" && capture.failure ? failureBox(capture) : null,
      h("p", { class: "remark" }, remark(pass, diff)),
    );
    this.prepareText(pass);
  }

  /** Draws the text that stands in place of a diff, which may be out of sight. */
  private prepareText(pass: Pass): void {
    const kind: Kind = pass.group === "llvm" ? "llvm" : "mlir";
    const number = textOf(pass);
    const all = this.text(pass);
    this.holder.hidden = !all.length;
    const look = JSON.stringify([number, labelOf(pass), toggles()]);
    if (!all.length || look === this.textLook) return;
    this.textLook = look;
    const { lines, numbers } = shownText(all, kind, toggles());
    this.shownText = number;
    this.numbers = numbers;
    this.pane.show({
      kind,
      lines,
      label: `IR of ${labelOf(pass)}`,
      gutters: [(row) => String(numbers[row - 1] ?? "")],
    });
  }

  /** Asks for the pass, its neighbours and the other changes; draws the neighbours while the reader reads. */
  private readAhead(capture: Capture, number: number): void {
    cancelIdleCallback(this.waiting);
    clearTimeout(this.pause);
    const { data } = this.app;
    const locations = state.flag("loc");
    const near = this.list.around(number);
    const others = capture.passes
      .flatMap((pass, at) => (hasDiff(pass) && !near.includes(at) ? [at] : []))
      .sort((one, other) => Math.abs(one - number) - Math.abs(other - number))
      .slice(0, MOST_READ_AHEAD);
    const diffOf = (at: number) => data.passDiff(capture.passes[at]!);
    const one = (queue: number[], what: (at: number) => void, then?: () => void) => {
      this.waiting = requestIdleCallback(() => {
        const at = queue.shift();
        if (!this.element.isConnected) return;
        if (at !== undefined) what(at);
        if (queue.length) one(queue, what, then);
        else then?.();
      });
    };
    let hasText = !isBehind(this.whole);
    const draw = (at: number) => {
      const diff = diffOf(at);
      const known = near.filter((at) => data.isReady(capture.passes[at]!, locations));
      if (differs(diff)) this.deck.prepare(diff, ...this.looks(diff), known.map(diffOf));
      else if (!hasText) {
        hasText = true;
        this.prepareText(capture.passes[at]!);
      }
    };
    if (data.ahead.works) {
      const passes = [number, ...near, ...others].map((at) => capture.passes[at]!);
      data.ahead.ask(passes.flatMap((pass) => data.needsOf(pass, locations)));
      const ready = near.filter((at) => data.isReady(capture.passes[at]!, locations));
      if (this.shows === "pass" && ready.length) one(ready, draw);
      return;
    }
    // Who steps on at once shall not wait for what lies far away.
    one([...near], diffOf, () =>
      one([...near], draw, () => {
        this.pause = setTimeout(() => one(others, diffOf), PAUSE_MS);
      }),
    );
  }

  private keys(): Key[] {
    const step = (by: number) => () => {
      const next = this.list.next(this.number(currentCapture(this.app)), by);
      if (next !== undefined) this.choose(next);
    };
    const flip = (name: string) => () => state.set({ [name]: !state.flag(name) }, true);
    return [
      { keys: ["j", "ArrowDown"], text: "The next pass", run: step(1) },
      { keys: ["k", "ArrowUp"], text: "The pass before", run: step(-1) },
      { keys: ["n"], text: "The next change in the diff", run: () => this.deck.front.step(1) },
      { keys: ["N"], text: "The change before", run: () => this.deck.front.step(-1) },
      {
        keys: ["Enter"],
        text: "Into the code",
        run: () => (isBehind(this.whole) ? this.deck.front : this.pane).focus(),
      },
      { keys: ["/"], text: "Filter the passes", run: () => this.list.focusFilter() },
      { keys: ["h"], text: "Hide the passes that changed nothing", run: flip("hide") },
      { keys: ["s"], text: "Side by side, or unified", run: flip("side") },
      { keys: ["l"], text: "Locations", run: flip("loc") },
      { keys: ["a"], text: "Aliases in place", run: flip("alias") },
      { keys: ["r"], text: "Attributes", run: flip("bare") },
      { keys: ["y"], text: "Copy the command that shows this", run: () => this.copyCommand() },
    ];
  }

  private clicked(text: string, column: number, lines: string[], place: Place): void {
    if (this.shows !== "pass") return;
    const capture = currentCapture(this.app);
    const pass = capture.passes[this.number(capture)];
    this.showLife(place.before ? pass?.before : pass?.after, place.line);
    this.openLayout(text, column, lines);
  }

  private showLife(text: number | undefined, line: number): void {
    fill(this.head.life, text === undefined ? null : lifeOf(this.app, captureNumber(this.app), text, line));
  }

  /** From an alias in the diff to its thread map, where the final TTGIR has that layout too; else says what it stands for. */
  private openLayout(text: string, column: number, lines: string[]): void {
    const name = nameAt(text, column, "mlir");
    if (!name || name[0] !== "#" || name.startsWith("#loc")) return;
    const encoding = definitions(lines).get(name);
    if (encoding === undefined) return;
    const { rows } = this.app.data.layouts(captureNumber(this.app));
    const at = rows.findIndex((row) => row.encoding === encoding);
    if (at >= 0) state.set({ tab: "layouts", layout: at + 1 });
    else toast(`${name} = ${encoding}`);
  }

  private copyCommand(): void {
    const capture = currentCapture(this.app);
    const pass = capture.passes[this.number(capture)];
    if (pass) void copy(commandOf(capture, pass));
  }
}

function remark(pass: Pass, diff: Diff | undefined): string {
  if (pass.outcome === "skipped") return "The plan switched this pass off: the IR stays as it was.";
  if (pass.outcome === "failed") return "The compile failed here. The IR before this pass:";
  if (pass.leftOut)
    return "The IR after this pass was not recorded; irscope dump --snapshots all keeps it. The IR before it, where it is known:";
  if (diff) return "Only names, numbers or locations changed. The IR:";
  if (pass.changed === null && pass.outcome === "ran")
    return "Whether this pass changed anything is not known: the IR before it was not recorded. The IR after it:";
  return "This pass changed nothing. The IR:";
}
