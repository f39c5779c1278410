// The search panel of a pane says how many hits there are, and which one is looked at.
import { getSearchQuery, searchPanelOpen } from "@codemirror/search";
import type { EditorState, Text } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { h } from "../dom";
import { count, plural } from "../format";

const MOST = 5000;

interface Hits {
  doc: Text;
  query: string;
  starts: number[];
}

let last: Hits | undefined;

/** Where the hits begin, up to `MOST`. */
function hitsOf(state: EditorState): number[] {
  const query = getSearchQuery(state);
  const key = JSON.stringify([query.search, query.caseSensitive, query.regexp, query.wholeWord]);
  if (last?.doc === state.doc && last.query === key) return last.starts;
  const starts: number[] = [];
  if (query.valid) {
    const cursor = query.getCursor(state);
    for (let next = cursor.next(); !next.done && starts.length < MOST; next = cursor.next())
      starts.push(next.value.from);
  }
  last = { doc: state.doc, query: key, starts };
  return starts;
}

export const hitCount = EditorView.updateListener.of(({ view, state }) => {
  const panel = searchPanelOpen(state) ? view.dom.querySelector(".cm-search") : null;
  if (!panel) return;
  let place = panel.querySelector(".hits");
  if (!place) panel.querySelector("[name=search]")?.after((place = h("span", { class: "hits", role: "status" })));
  const starts = hitsOf(state);
  const at = starts.indexOf(state.selection.main.from);
  const all = starts.length < MOST ? plural(starts.length, "hit") : `more than ${count(MOST)} hits`;
  const text = !getSearchQuery(state).search ? "" : at < 0 ? all : `${at + 1} of ${all}`;
  if (place && place.textContent !== text) place.textContent = text;
});
