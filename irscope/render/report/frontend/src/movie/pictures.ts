// The pictures of a movie: tiles under their layouts, the curve of a counter, and what each pass made and removed.
import type { Frame, TilePicture } from "../data/movie";
import { svg } from "../dom";

const WIDE = 226;
const HIGH = 122;
const CURVE = 28;
const BAR = 30;

/** A tile: its parts, what the first thread holds, and its size. */
export function tilePicture(tile: TilePicture): SVGSVGElement {
  const left = (WIDE - tile.width) / 2;
  const top = 16 + (HIGH - 16 - tile.height) / 2;
  const whole = tile.whole[0] === tile.rows && tile.whole[1] === tile.columns;
  const outline = `M0 0h${tile.width}v${tile.height}h-${tile.width}z`;
  return svg(
    "svg",
    { class: "tile", viewBox: `-44 0 ${WIDE + 46} ${HIGH + 2}`, role: "img", "aria-label": tile.caption },
    svg("text", { x: WIDE / 2, y: top - 5, "text-anchor": "middle" }, tile.title),
    whole ? svg("text", { x: left - 5, y: top + tile.height / 2 + 4, "text-anchor": "end" }, tile.rows) : null,
    svg(
      "g",
      { transform: `translate(${left} ${top})` },
      [...parts(tile)].map(([color, path]) => svg("path", { class: `part p${color}`, d: path })),
      tile.held.length ? svg("path", { class: "held", d: marks(tile) }) : null,
      svg("path", { class: tile.colors.length ? "outline" : "outline unknown", d: outline }),
    ),
  );
}

/** The path of the cells of each colour. */
function parts(tile: TilePicture): Map<string, string> {
  const high = tile.height / tile.colors.length;
  const paths = new Map<string, string>();
  tile.colors.forEach((colors, row) => {
    const wide = tile.width / colors.length;
    [...colors].forEach((color, column) =>
      paths.set(color, (paths.get(color) ?? "") + box(column * wide, row * high, wide, high)),
    );
  });
  return paths;
}

function marks(tile: TilePicture): string {
  const [across, down] = [tile.width / tile.columns, tile.height / tile.rows];
  return tile.held.map(([row, column, count]) => box(column * across, row * down, count * across, down)).join("");
}

const box = (left: number, top: number, width: number, height: number) =>
  `M${left} ${top}h${width}v${height}h${-width}z`;

/** The most of some counts, those of LLVM's dialects left out: nothing else would be seen. */
function most(frames: Frame[], counts: number[]): number {
  return Math.max(1, ...counts.filter((_, at) => !frames[at]!.came[2]));
}

/** A counter over all frames. */
export function curve(frames: Frame[], counter: number, shown: number): SVGSVGElement {
  const counts = frames.map((frame) => frame.counts[counter]!);
  const top = most(frames, counts);
  const points = counts.map((count, at) => `L${at} ${(1 - Math.min(count / top, 1)) * CURVE}h1`).join("");
  return svg(
    "svg",
    { class: "curve", viewBox: `0 0 ${frames.length} ${CURVE}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("path", { class: "area", d: `M0 ${CURVE}${points}V${CURVE}z` }),
    svg("rect", { class: "now", x: shown, y: 0, width: 1, height: CURVE }),
  );
}

/** What each pass made, above, and removed, below; `choose` gets the frame that is clicked. */
export function timeline(frames: Frame[], shown: number, choose: (at: number) => void): SVGSVGElement {
  const made = frames.map((one) => one.came[0]);
  const gone = frames.map((one) => one.came[1]);
  const top = Math.max(most(frames, made), most(frames, gone));
  const height = (count: number) => Math.sqrt(Math.min(count / top, 1)) * BAR;
  return svg(
    "svg",
    {
      class: "timeline",
      viewBox: `0 0 ${frames.length} ${2 * BAR}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    frames.map((_, at) => [
      svg("rect", { class: "made", x: at + 0.06, y: BAR - height(made[at]!), width: 0.88, height: height(made[at]!) }),
      svg("rect", { class: "gone", x: at + 0.06, y: BAR, width: 0.88, height: height(gone[at]!) }),
      svg("rect", {
        class: at === shown ? "slot now" : "slot",
        x: at,
        y: 0,
        width: 1,
        height: 2 * BAR,
        onclick: () => choose(at),
      }),
    ]),
  );
}
