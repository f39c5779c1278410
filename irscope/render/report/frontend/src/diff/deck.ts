// Diffs drawn before they are asked for: one is in front, the others wait behind it, laid out and out of sight.
import type { Diff } from "../data/diff";
import { h } from "../dom";
import { bringToFront, putBehind } from "./behind";
import type { Shown } from "./rows";
import { DiffView, type DiffListeners } from "./view";

/** One in front, two after it, one before it. */
const MOST = 4;

interface Card {
  view: DiffView;
  /** What it was drawn for; undefined for one that was in front, and may have been scrolled and unfolded. */
  diff: Diff | undefined;
  look: string;
}

export class Deck {
  readonly element = h("div", { class: "deck" });
  /** The one in front first, then those that wait, the longest waiting one last. */
  private cards: Card[] = [];

  constructor(private readonly listeners: DiffListeners) {
    this.cards.push(this.made());
  }

  get front(): DiffView {
    return this.cards[0]!.view;
  }

  /** Brings a diff to the front; `look` names all that decides how it is drawn. */
  show(diff: Diff, look: string, shown: () => Shown, split: boolean): void {
    const front = this.cards[0]!;
    const ready = this.cards.find((card) => card !== front && card.diff === diff && card.look === look);
    // An open search goes on in the next diff, and what was unfolded stays so in another look.
    if (!ready || front.diff === diff || front.view.isSearched) {
      front.view.show(diff, shown(), split);
      [front.diff, front.look] = [diff, look];
      return;
    }
    const focused = front.view.hasFocus;
    front.diff = undefined;
    this.cards = [ready, ...this.cards.filter((card) => card !== ready)];
    bringToFront(ready.view.element);
    putBehind(front.view.element);
    if (focused) ready.view.focus();
  }

  /** Draws a diff behind the one in front, in place of one that is not wanted any more. */
  prepare(diff: Diff, look: string, shown: () => Shown, split: boolean, wanted: readonly (Diff | undefined)[]): void {
    if (this.cards.some((card) => card.diff === diff && card.look === look)) return;
    const [, ...behind] = this.cards;
    let card = behind.findLast((one) => one.look !== look || !wanted.includes(one.diff));
    if (!card && this.cards.length < MOST) {
      this.cards.push((card = this.made()));
    }
    if (!card) return;
    card.view.show(diff, shown(), split);
    putBehind(card.view.element);
    [card.diff, card.look] = [diff, look];
  }

  private made(): Card {
    const view = new DiffView(this.listeners);
    this.element.append(view.element);
    return { view, diff: undefined, look: "" };
  }
}
