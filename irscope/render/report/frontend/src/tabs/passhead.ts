// What stands above a pass's diff: what it is, what it changed, what can be copied, and how the diff is shown.
import type { Toggles } from "../code/aliases";
import { command, copyButton } from "../copy";
import type { Diff } from "../data/diff";
import { hasDiff, labelOf, type Capture, type Pass } from "../data/model";
import { fill, h, toggle } from "../dom";
import { milliseconds, signed } from "../format";
import { state } from "../state";
import { passLog } from "./passlog";

const COUNTS = ["lines", "operations", "layouts", "convert_layouts"];

interface Given {
  /** The IR after a pass. */
  textAfter(pass: Pass): string;
  /** The diff that is shown. */
  diff(): string;
  lines(text: number): string[];
}

/** Its elements stay from pass to pass: a step changes their words alone. */
export class PassHead {
  readonly element = h("div", { class: "pass-head" });
  /** The life of an operation that was clicked. */
  readonly life = h("span", { class: "life" });
  private readonly title = h("h1");
  private readonly outcome = h("span");
  private readonly time = h("span", { class: "faint" });
  private readonly counts = h("span");
  private readonly argument = h("code", { class: "argument" });
  private readonly operations = h("div", { class: "chips" });
  private readonly log = h("div");
  private readonly summary = h("span", { class: "faint summary" });
  private readonly copyDiff: HTMLElement;
  private readonly toggles = new Map<string, HTMLElement>();
  private readonly parts: HTMLElement[];
  private shown: { capture: Capture; pass: Pass } | undefined;

  constructor(private readonly given: Given) {
    const copied = (label: string, title: string, text: (capture: Capture, pass: Pass) => string) =>
      copyButton(label, title, () => (this.shown ? text(this.shown.capture, this.shown.pass) : ""));
    this.copyDiff = copied("diff", "Copy this diff", () => given.diff());
    this.parts = [
      h(
        "div",
        { class: "headline" },
        this.title,
        this.outcome,
        this.time,
        this.counts,
        h("span", { class: "room" }),
        copied("IR", "Copy the IR after this pass", (_, pass) => given.textAfter(pass)),
        this.copyDiff,
        copied("diff command", "Copy the command that shows this diff (y)", commandOf),
        copied("without it", "Copy the command that compiles without this pass", (capture, pass) =>
          command("diff", capture.id, "--disable-pass", labelOf(pass)),
        ),
        copied("plan", "Copy the plan without this pass", (capture, pass) =>
          `${capture.plan} -${labelOf(pass)}`.trim(),
        ),
      ),
      this.argument,
      this.operations,
      this.log,
      h(
        "div",
        { class: "bar-of-tools" },
        this.toggle("side", "side by side", "Before and after next to each other (s)"),
        this.toggle("loc", "locations", "Show locations (l)"),
        this.toggle("alias", "aliases in place", "Show what aliases stand for (a)"),
        this.toggle("bare", "no attributes", "Hide attribute dictionaries (r)"),
        this.summary,
        this.life,
      ),
    ];
  }

  /** A pass and its diff; undefined where it has none, or none that is known yet. */
  show(capture: Capture, pass: Pass, diff: Diff | undefined): void {
    const isNew = pass !== this.shown?.pass;
    if (!this.shown) this.element.replaceChildren(...this.parts);
    this.shown = { capture, pass };
    if (this.life.firstChild) fill(this.life);
    say(this.summary, [diff?.fallback ?? "", diff?.summary ?? ""].join(" ").trim());
    this.copyDiff.hidden = !diff;
    for (const [name, one] of this.toggles) set(one, "aria-pressed", String(state.flag(name)));
    if (isNew) this.showPass(pass);
  }

  /** Says that there is no pass. */
  showNone(remark: string): void {
    this.shown = undefined;
    fill(this.element, h("p", null, remark));
  }

  private showPass(pass: Pass): void {
    say(this.title, labelOf(pass));
    say(this.outcome, pass.outcome === "ran" ? "" : pass.outcome === "skipped" ? "switched off" : "failed");
    set(this.outcome, "class", `chip ${pass.outcome}`);
    say(this.time, milliseconds(pass.us));
    const counts = (pass.counts ?? []).map((value, index) =>
      value ? `${signed(value)} ${COUNTS[index]!.replace("_", " ")}` : "",
    );
    say(this.counts, counts.filter(Boolean).join(", "));
    const options = pass.options ? `{${pass.options}}` : "";
    say(this.argument, pass.argument ? `${pass.argument}${options}${pass.scope ? ` on ${pass.scope}` : ""}` : "");
    const chips = pass.byOperation ?? [];
    fill(
      this.operations,
      chips.map(([name, change]) => h("span", { class: "chip" }, `${signed(change)} ${name}`)),
    );
    this.operations.hidden = !chips.length;
    const log = passLog(pass, (number) => this.given.lines(number));
    if (log || this.log.firstChild) fill(this.log, log);
  }

  private toggle(name: string, label: string, title: string): HTMLElement {
    const made = toggle(label, title, state.flag(name), (on) => state.set({ [name]: on }, true));
    this.toggles.set(name, made);
    return made;
  }
}

/** How lines are shown, as the toggles have it. */
export function toggles(): Toggles {
  return { locations: state.flag("loc"), aliases: state.flag("alias"), attributes: !state.flag("bare") };
}

export function commandOf(capture: Capture, pass: Pass): string {
  return hasDiff(pass)
    ? command("diff", capture.id, "--pass", labelOf(pass))
    : command("show", capture.id, "--after", labelOf(pass));
}

/** Words of an element, which is not there without any. What stays the same is not touched. */
function say(element: HTMLElement, text: string): void {
  const node = element.firstChild;
  if (!(node instanceof Text)) element.textContent = text;
  else if (node.data !== text) node.data = text;
  if (element.hidden === (text !== "")) element.hidden = text === "";
}

function set(element: HTMLElement, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
