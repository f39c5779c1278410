// The texts that the Stages tab can show, and the ways into it from tables.
import type { Capture } from "../data/model";
import { button, h } from "../dom";
import { fileName } from "../format";
import { state } from "../state";
import type { Source } from "./stagepane";

/** The Python files of a capture and the stages that have a text. */
export function sourcesOf(capture: Capture): Source[] {
  const files = capture.sources.map(([path, text], index): Source => ({
    id: `py${index}`,
    title: fileName(path),
    kind: "python",
    text,
    file: path,
    offset: 0,
  }));
  if (!files.some((file) => file.file === capture.file) && capture.kernelSource !== undefined) {
    files.unshift({
      id: "py0",
      title: fileName(capture.file) || "source",
      kind: "python",
      text: capture.kernelSource,
      file: capture.file,
      offset: Math.max(0, capture.firstLine - 1),
    });
    files.forEach((file, index) => (file.id = `py${index}`));
  }
  const stages = capture.stages.flatMap((row): Source[] =>
    row.text === undefined
      ? []
      : [{ id: row.stage, title: row.stage, kind: row.kind, text: row.text, file: "", offset: 0 }],
  );
  return [...files, ...stages];
}

/** A link to a line of the TTGIR; `beside` is a stage that is opened beside it. */
export function operationLink(line: number, beside = "", text = `ttgir:${line}`): HTMLElement {
  const panes = ["py0", "ttgir", beside].filter(Boolean).join(",");
  const open = () => state.set({ tab: "stages", panes, at: `ttgir:${line}` });
  return button(text, "Open the operation", open, { class: "link" });
}

/** A link to a line of Python, `file:line`; its text alone where the page does not hold the file. */
export function pythonLink(capture: Capture, place: string, chain: string[]): HTMLElement {
  const at = place.lastIndexOf(":");
  const source = sourcesOf(capture).find((one) => one.kind === "python" && one.file === place.slice(0, at));
  const text = `${fileName(place.slice(0, at))}${place.slice(at)}`;
  const title = callers(chain);
  if (!source) return h("span", { title }, place ? text : "");
  const open = () =>
    state.set({ tab: "stages", panes: `${source.id},ttgir`, at: `${source.id}:${place.slice(at + 1)}` });
  return button(text, title, open, { class: "link" });
}

/** A place with the calls that lead to it. */
export const callers = (chain: string[]): string => chain.join(" called from ");
