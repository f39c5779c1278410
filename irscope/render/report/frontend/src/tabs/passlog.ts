// What the compiler said of its reasons in a pass: the decisions, and behind them all that it printed.

import type { Pass } from "../data/model";
import { fill, h, table } from "../dom";
import { fileName, plural } from "../format";

const LONGEST = 5000;

/** Folded until it is asked for; nothing for a pass without a log. */
export function passLog(pass: Pass, textOf: (number: number) => string[]): HTMLElement | null {
  const number = pass.log;
  if (number === undefined) return null;
  const decisions = pass.decisions ?? [];
  const body = h("div", null);
  const said = decisions.length ? plural(decisions.length, "decision") : "no decision that irscope reads";
  const box = h("details", { class: "pass-log" }, h("summary", null, `The compiler's log: ${said}`), body);
  box.addEventListener("toggle", () => {
    if (!box.open || body.childElementCount) return;
    const lines = textOf(number);
    const more = lines.length - LONGEST;
    fill(
      body,
      decisions.length
        ? table(
            ["line", "decided"],
            decisions.map(([place, said]) => [fileName(place), said]),
          )
        : null,
      h("pre", null, lines.slice(0, LONGEST).join("\n"), more > 0 ? `\n… ${more} more lines` : ""),
    );
  });
  return box;
}
