// What unpacks and compares texts: the page runs this script before the viewer, and once more as a worker, which
// answers the page's questions while the page goes on.
import { sent, joined, type Sent } from "./data/sent";
import type { Kind, TextRow } from "./data/model";
import { recent, Texts, WINDOW } from "./data/texts";
import { inflateSync } from "fflate";
import { bodyOf } from "./structure/bodies";
import { countsOf, isOperation } from "./structure/counts";
import { diffTexts } from "./structure/structural";

/** What the page tells its worker: the index of the texts, bytes of a chunk, or what it wants to know. */
export type Told = { rows: TextRow[] } | { chunk: number; bytes: Uint8Array } | Asked;
/** The lines of a text, or how two differ. */
export type Asked = { text: number } | { left: number; right: number; kind: Kind };
/** The answer to the question that was asked last. */
export type Answer = { text: string } | { diff: Sent };

const comparing = { bodyOf, countsOf, diffTexts, inflateSync, isOperation, recent, Texts, WINDOW };
export type Comparing = typeof comparing;
(globalThis as { irscopeComparing?: Comparing }).irscopeComparing = comparing;

function serve(): void {
  const chunks = new Map<number, Uint8Array>();
  let texts = new Texts([], () => new Uint8Array());
  const answer = (asked: Asked): Answer =>
    "text" in asked
      ? { text: joined(texts.lines(asked.text)) }
      : { diff: sent(diffTexts(texts.lines(asked.left), texts.lines(asked.right), asked.kind)) };
  addEventListener("message", ({ data }: MessageEvent<Told>) => {
    if ("rows" in data) texts = new Texts(data.rows, (chunk) => chunks.get(chunk)!);
    else if ("chunk" in data) chunks.set(data.chunk, data.bytes);
    else postMessage(answer(data));
  });
}

if ("WorkerGlobalScope" in globalThis) serve();
