// Passes: the pipeline on the left, what the chosen pass did on the right.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { definitions, shownLines, shownText, type Toggles } from "../code/aliases";
import { Pane } from "../code/pane";
import { nameAt } from "../code/values";
import { command, copy, copyButton, toast } from "../copy";
import type { Diff } from "../data/diff";
import { hasDiff, labelOf, type Capture, type Kind, type Pass } from "../data/model";
import { Deck } from "../diff/deck";
import type { Shown } from "../diff/rows";
import type { Place } from "../diff/view";
import { fill, h, toggle } from "../dom";
import { milliseconds, signed } from "../format";
import type { Key } from "../keys";
import { state } from "../state";
import { lifeOf } from "./life";
import { failureBox } from "./overview";
import { PassList } from "./passlist";
import { passLog } from "./passlog";

const PAUSE_MS = 500;
/** Changes that are compared before they are asked for: the more, the more memory. */
const MOST_READ_AHEAD = 60;
const COUNTS = ["lines", "operations", "layouts", "convert_layouts"];

export class PassesTab implements Tab {
  readonly name = "passes";
  readonly title = "Passes";
  readonly element = h("section", { class: "passes split-view", "aria-label": "Passes" });
  private readonly list: PassList;
  private readonly head = h("div", { class: "pass-head" });
  private readonly life = h("span", { class: "life" });
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
  private waiting = 0;
  private pause = 0;

  constructor(private readonly app: App) {
    this.list = new PassList((number) => this.choose(number));
    this.element.append(this.list.element, h("div", { class: "pass" }, this.head, this.body));
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

  private toggles(): Toggles {
    return { locations: state.flag("loc"), aliases: state.flag("alias"), attributes: !state.flag("bare") };
  }

  private draw(capture: Capture): void {
    const number = this.number(capture);
    const pass = capture.passes[number];
    if (!pass) {
      fill(
        this.head,
        h(
          "p",
          null,
          capture.status === "failed" ? "The compile failed before any pass ran." : "No passes were recorded.",
        ),
      );
      this.bring(false);
      this.holder.hidden = true;
      fill(this.remark, capture.failure ? failureBox(capture) : null);
      return;
    }
    const diff = this.app.data.passDiff(pass);
    const isDiff = differs(diff);
    this.drawHead(capture, pass, diff);
    this.bring(isDiff);
    if (isDiff) this.deck.show(diff, ...this.looks(diff));
    else this.drawText(capture, pass, diff);
    this.readAhead(capture, number);
  }

  /** Brings the diff to the front, or what stands in place of one. */
  private bring(isDiff: boolean): void {
    // What was looked at may have been scrolled.
    if (isDiff && !this.isBehind(this.whole)) this.textLook = "";
    this.deck.element.classList.toggle("behind", !isDiff);
    this.whole.classList.toggle("behind", isDiff);
  }

  private isBehind(element: HTMLElement): boolean {
    return element.classList.contains("behind");
  }

  /** How a diff is drawn: the name of that, what is shown of its lines, and whether in two panes. */
  private looks(diff: Diff): [string, () => Shown, boolean] {
    const toggles = this.toggles();
    const split = state.flag("side");
    return [JSON.stringify([toggles, split]), () => shownLines(diff, toggles), split];
  }

  private drawHead(capture: Capture, pass: Pass, diff: Diff | undefined): void {
    const counts = (pass.counts ?? [])
      .map((value, index) => (value ? `${signed(value)} ${COUNTS[index]!.replace("_", " ")}` : ""))
      .filter(Boolean);
    const operations = (pass.byOperation ?? []).map(([name, change]) =>
      h("span", { class: "chip" }, `${signed(change)} ${name}`),
    );
    const text = () => this.text(pass).join("\n");
    fill(this.life);
    fill(
      this.head,
      h(
        "div",
        { class: "headline" },
        h("h1", null, labelOf(pass)),
        pass.outcome === "ran"
          ? null
          : h("span", { class: `chip ${pass.outcome}` }, pass.outcome === "skipped" ? "switched off" : "failed"),
        h("span", { class: "faint" }, milliseconds(pass.us)),
        h("span", null, counts.join(", ")),
        h("span", { class: "room" }),
        copyButton("IR", "Copy the IR after this pass", text),
        diff ? copyButton("diff", "Copy this diff", () => this.deck.front.text()) : null,
        copyButton("diff command", "Copy the command that shows this diff (y)", () => commandOf(capture, pass)),
        copyButton("without it", "Copy the command that compiles without this pass", () =>
          command("diff", capture.id, "--disable-pass", labelOf(pass)),
        ),
        copyButton("plan", "Copy the plan without this pass", () => `${capture.plan} -${labelOf(pass)}`.trim()),
      ),
      pass.argument
        ? h(
            "code",
            { class: "argument" },
            pass.argument,
            pass.options ? `{${pass.options}}` : "",
            pass.scope ? ` on ${pass.scope}` : "",
          )
        : null,
      operations.length ? h("div", { class: "chips" }, operations) : null,
      passLog(pass, (number) => this.app.data.lines(number)),
      h(
        "div",
        { class: "bar-of-tools" },
        this.tools(),
        h("span", { class: "faint summary" }, diff?.fallback ?? "", " ", diff?.summary ?? ""),
        this.life,
      ),
    );
  }

  private tools(): HTMLElement[] {
    return [
      toggle("side by side", "Before and after next to each other (s)", state.flag("side"), (on) =>
        state.set({ side: on }, true),
      ),
      toggle("locations", "Show locations (l)", state.flag("loc"), (on) => state.set({ loc: on }, true)),
      toggle("aliases in place", "Show what aliases stand for (a)", state.flag("alias"), (on) =>
        state.set({ alias: on }, true),
      ),
      toggle("no attributes", "Hide attribute dictionaries (r)", state.flag("bare"), (on) =>
        state.set({ bare: on }, true),
      ),
    ];
  }

  private textOf(pass: Pass): number | undefined {
    return pass.outcome === "failed" ? (pass.before ?? pass.after) : (pass.after ?? pass.before);
  }

  private text(pass: Pass): string[] {
    const number = this.textOf(pass);
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
    const number = this.textOf(pass);
    const all = this.text(pass);
    this.holder.hidden = !all.length;
    const look = JSON.stringify([number, labelOf(pass), this.toggles()]);
    if (!all.length || look === this.textLook) return;
    this.textLook = look;
    const { lines, numbers } = shownText(all, kind, this.toggles());
    this.shownText = number;
    this.numbers = numbers;
    this.pane.show({
      kind,
      lines,
      label: `IR of ${labelOf(pass)}`,
      gutters: [(row) => String(numbers[row - 1] ?? "")],
    });
  }

  /** Draws the neighbours, then compares the other changes, one at a time while the reader reads. */
  private readAhead(capture: Capture, number: number): void {
    cancelIdleCallback(this.waiting);
    clearTimeout(this.pause);
    const near = this.list.around(number);
    const others = capture.passes.flatMap((pass, at) => (hasDiff(pass) && !near.includes(at) ? [at] : []));
    const diffOf = (at: number) => this.app.data.passDiff(capture.passes[at]!);
    const one = (queue: number[], what: (at: number) => void, then?: () => void) => {
      this.waiting = requestIdleCallback(() => {
        const at = queue.shift();
        if (!this.element.isConnected) return;
        if (at !== undefined) what(at);
        if (queue.length) one(queue, what, then);
        else then?.();
      });
    };
    let hasText = !this.isBehind(this.whole);
    const draw = (at: number) => {
      const diff = diffOf(at);
      if (differs(diff)) this.deck.prepare(diff, ...this.looks(diff), near.map(diffOf));
      else if (!hasText) {
        hasText = true;
        this.prepareText(capture.passes[at]!);
      }
    };
    // Who steps on at once shall not wait for what lies far away.
    one([...near], diffOf, () =>
      one([...near], draw, () => {
        this.pause = setTimeout(() => one(others.slice(0, MOST_READ_AHEAD), diffOf), PAUSE_MS);
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
        run: () => (this.isBehind(this.whole) ? this.deck.front : this.pane).focus(),
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
    fill(this.life, text === undefined ? null : lifeOf(this.app, captureNumber(this.app), text, line));
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

/** Whether there is a difference to be shown. */
function differs(diff: Diff | undefined): diff is Diff {
  return diff?.entries.some((entry) => entry.op !== "equal") ?? false;
}

function commandOf(capture: Capture, pass: Pass): string {
  return hasDiff(pass)
    ? command("diff", capture.id, "--pass", labelOf(pass))
    : command("show", capture.id, "--after", labelOf(pass));
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
