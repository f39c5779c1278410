// Passes: the pipeline on the left, what the chosen pass did on the right.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { definitions, shownLines, shownText } from "../code/aliases";
import { Pane } from "../code/pane";
import { tokensOf } from "../data/columns";
import { copy, toast } from "../copy";
import { differs, type Diff } from "../data/diff";
import { labelOf, textOf, type Capture, type Kind, type Pass } from "../data/model";
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
  private readonly body = h("div", { class: "pass-body" }, this.deck.element, this.whole);
  private readonly right = h("div", { class: "pass" }, this.head.element, this.body);
  private waiting = 0;

  constructor(private readonly app: App) {
    this.list = new PassList((number) => this.choose(number));
    this.element.append(this.list.element, this.right);
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
      this.head.showNone(
        capture.status === "failed" ? "The compile failed before any pass ran." : "No passes were recorded.",
      );
      this.bring(this.whole);
      this.holder.hidden = true;
      fill(this.remark, capture.failure ? failureBox(capture) : null);
      return;
    }
    const diff = this.app.data.passDiff(captureNumber(this.app), pass);
    const isDiff = differs(diff);
    this.head.show(capture, pass, diff);
    this.bring(isDiff ? this.deck.element : this.whole);
    if (isDiff) this.deck.show(diff, ...this.looks(pass, diff));
    else this.drawText(capture, pass, diff);
    this.readAhead(capture, number);
  }

  /** Brings the diff to the front, or what stands in place of one. */
  private bring(front: HTMLElement): void {
    // What was looked at may have been scrolled.
    if (front !== this.whole && !isBehind(this.whole)) this.textLook = "";
    for (const one of [this.deck.element, this.whole]) {
      if (one === front) bringToFront(one);
      else if (!isBehind(one)) putBehind(one);
    }
  }

  /** How a diff is drawn: the name of that, what is shown of its lines, and whether in two panes. */
  private looks(pass: Pass, diff: Diff): [string, () => Shown, boolean] {
    const look = toggles();
    const split = state.flag("side");
    const { data } = this.app;
    const shown = () => shownLines(diff, [data.whole(pass.before!), data.whole(pass.after!)], look);
    return [JSON.stringify([look, split]), shown, split];
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
    const { lines, numbers } = shownText(this.app.data.whole(number!), kind, toggles());
    this.shownText = number;
    this.numbers = numbers;
    this.pane.show({
      kind,
      lines,
      label: `IR of ${labelOf(pass)}`,
      gutters: [(row) => String(numbers[row - 1] ?? "")],
    });
  }

  /** Draws the neighbours of a pass while the reader reads. */
  private readAhead(capture: Capture, number: number): void {
    cancelIdleCallback(this.waiting);
    const near = this.list.around(number);
    const waiting = [...near];
    const diffOf = (at: number) => this.app.data.passDiff(captureNumber(this.app), capture.passes[at]!);
    let hasText = !isBehind(this.whole);
    const next = () => {
      const at = waiting.shift();
      if (at === undefined || !this.element.isConnected) return;
      const diff = diffOf(at);
      if (differs(diff)) this.deck.prepare(diff, ...this.looks(capture.passes[at]!, diff), near.map(diffOf));
      else if (!hasText) {
        hasText = true;
        this.prepareText(capture.passes[at]!);
      }
      this.waiting = requestIdleCallback(next);
    };
    this.waiting = requestIdleCallback(next);
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
    const name = tokensOf(text).find(([one, from]) => column >= from && column <= from + one.length)?.[0];
    if (name?.[0] !== "#") return;
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
