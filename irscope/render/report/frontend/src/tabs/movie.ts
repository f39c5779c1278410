// Movie: the passes that changed the kernel, one frame each: its tiles, what is counted, operations added and removed.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { command, copyButton } from "../copy";
import { labelOf, type Capture } from "../data/model";
import { COUNTERS, type Frame, type Held, type Movie } from "../data/movie";
import { button, fill, h, select, table } from "../dom";
import { count, signed } from "../format";
import type { Key } from "../keys";
import { curve, tilePicture, timeline } from "../movie/pictures";
import { state } from "../state";
import { pythonLink } from "./sources";

const SPEEDS: [string, string][] = [
  ["2400", "half speed"],
  ["1200", "speed 1"],
  ["600", "speed 2"],
  ["300", "speed 4"],
];

export class MovieTab implements Tab {
  readonly name = "movie";
  readonly title = "Movie";
  readonly element = h("section", { class: "movie", "aria-label": "Movie" });
  private readonly slider = h("input", { type: "range", min: 0, "aria-label": "frame" });
  private readonly player = button("▶", "Play or pause (space)", () => this.toggle(), { "aria-label": "play" });
  private readonly controls = h("div", { class: "controls" });
  private readonly screen = h("div", { class: "screen", "aria-live": "off" });
  private pause = 1200;
  private timer = 0;
  private shown = -1;

  constructor(private readonly app: App) {
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
  }

  enter(): void {
    this.app.keys.forTab("Movie", this.keys());
  }

  update(changed: Set<string>): void {
    const capture = currentCapture(this.app);
    const movie = this.movie();
    if (changed.has("c")) this.stop();
    if (!movie?.frames.length) {
      this.stop();
      fill(this.element, h("p", { class: "remark" }, movie ? "No IR of a pass was recorded." : NOT_HERE));
      this.shown = -1;
      return;
    }
    const number = captureNumber(this.app);
    if (this.shown !== number) {
      this.shown = number;
      this.slider.max = String(movie.frames.length - 1);
      fill(
        this.controls,
        this.player,
        button("‹", "The frame before (←)", () => this.step(-1), { "aria-label": "the frame before" }),
        this.slider,
        button("›", "The next frame (→)", () => this.step(1), { "aria-label": "the next frame", class: "next" }),
        select("speed", SPEEDS, String(this.pause), (value) => this.changeSpeed(Number(value))),
        copyButton("command", "Copy the command that writes it as an SVG that plays", () =>
          command("draw", "movie", capture.id, "-o", "movie.svg"),
        ),
      );
      fill(this.element, this.controls, this.screen);
    }
    this.draw(capture, movie);
  }

  private movie(): Movie | undefined {
    return this.app.data.movie(captureNumber(this.app));
  }

  private at(movie: Movie): number {
    const { passes } = currentCapture(this.app);
    const first = movie.frames.findIndex((frame) => passes[frame.passes.at(-1) ?? -1]?.stage === "ttgir");
    return Math.min(Math.max(state.number("frame", Math.max(first, 0)), 0), movie.frames.length - 1);
  }

  private go(at: number, quiet = true): void {
    state.set({ frame: at }, quiet);
  }

  private step(by: number): void {
    const movie = this.movie();
    if (movie) this.go(Math.min(Math.max(this.at(movie) + by, 0), movie.frames.length - 1));
  }

  // ── playing ───────────────────────────────────────────────────────────────────────────────────────────────

  private toggle(): void {
    if (this.timer) return this.stop();
    this.player.textContent = "▮▮";
    this.player.setAttribute("aria-label", "pause");
    this.timer = setInterval(() => {
      const movie = this.movie();
      if (!movie || !this.element.isConnected) return this.stop();
      this.go((this.at(movie) + 1) % movie.frames.length);
    }, this.pause);
  }

  private stop(): void {
    clearInterval(this.timer);
    this.timer = 0;
    this.player.textContent = "▶";
    this.player.setAttribute("aria-label", "play");
  }

  private changeSpeed(pause: number): void {
    this.pause = pause;
    if (!this.timer) return;
    this.stop();
    this.toggle();
  }

  private keys(): Key[] {
    const end = () => (this.movie()?.frames.length ?? 1) - 1;
    return [
      { keys: ["ArrowRight", "j"], text: "The next frame", run: () => this.step(1) },
      { keys: ["ArrowLeft", "k"], text: "The frame before", run: () => this.step(-1) },
      { keys: ["Home"], text: "The first frame", run: () => this.go(0) },
      { keys: ["End"], text: "The last frame", run: () => this.go(end()) },
      { keys: [" "], text: "Play or pause", run: () => this.toggle() },
      { keys: ["Enter"], text: "The diff of this pass", run: () => this.openPass() },
    ];
  }

  private openPass(): void {
    const movie = this.movie();
    const frame = movie?.frames[this.at(movie)];
    if (frame?.passes.length) showPass(frame);
  }

  // ── a frame ───────────────────────────────────────────────────────────────────────────────────────────────

  private draw(capture: Capture, movie: Movie): void {
    const at = this.at(movie);
    const frame = movie.frames[at]!;
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", titleOf(capture, frame));
    fill(
      this.screen,
      h(
        "div",
        { class: "headline" },
        h("span", { class: "faint" }, `${at}/${movie.frames.length - 1}`),
        frame.passes.length
          ? button(titleOf(capture, frame), "The diff of this pass (Enter)", () => showPass(frame), { class: "link" })
          : h("h1", null, titleOf(capture, frame)),
        frame.passes[0] === frame.passes[1]
          ? null
          : h("span", { class: "faint" }, "several passes, whose IR was not kept"),
      ),
      timeline(movie.frames, at, (chosen) => this.go(chosen)),
      h(
        "div",
        { class: "values" },
        frame.held.map((held, number) => card(capture, movie, held, movie.values[number]!)),
        h(
          "p",
          { class: "faint" },
          "Colours: warps, or banks of shared memory. Marked: the first thread's elements. Framed: changed by this pass. " +
            "Bars above: operations that each pass added and removed, on a square-root scale.",
        ),
      ),
      h(
        "div",
        { class: "beside" },
        h("section", { class: "card" }, h("h2", null, "Counted after this pass"), counters(movie, at)),
        h("section", { class: "card" }, h("h2", null, "Operations added and removed"), changes(capture, frame)),
      ),
    );
  }
}

const NOT_HERE =
  "A report of more than 8 captures holds no movies: one of this capture alone does, and irscope draw movie.";

function titleOf(capture: Capture, frame: Frame): string {
  const pass = capture.passes[frame.passes[1] ?? -1];
  return pass ? labelOf(pass) : "before the first pass";
}

function showPass(frame: Frame): void {
  state.set({ tab: "passes", pass: frame.passes[1]! + 1 });
}

function card(capture: Capture, movie: Movie, held: Held, [title, place]: [string, string]): HTMLElement {
  const [number, type, known, isUnclear, isNew] = held;
  const tile = movie.tiles[number];
  return h(
    "section",
    { class: isNew ? "card fresh" : "card" },
    h("h2", null, title, place ? lineLink(capture, place) : null),
    h("p", { class: "type" }, type),
    tile ? tilePicture(tile) : null,
    h("p", null, tile?.caption ?? ""),
    h("p", { class: isUnclear ? "warn" : "faint" }, known),
  );
}

/** The line alone: most are of one file. */
function lineLink(capture: Capture, place: string): HTMLElement {
  const link = pythonLink(capture, place, []);
  link.title = place;
  link.textContent = place.slice(place.lastIndexOf(":"));
  return link;
}

function counters(movie: Movie, at: number): HTMLElement {
  const before = movie.frames[at - 1];
  const rows = COUNTERS.map((title, number) => {
    const now = movie.frames[at]!.counts[number]!;
    return [title, String(now), before ? signed(now - before.counts[number]!) : "", curve(movie.frames, number, at)];
  });
  return table([], rows, { class: "figures counters" });
}

function changes(capture: Capture, frame: Frame): HTMLElement {
  if (!frame.passes.length) return h("p", { class: "faint" }, "The IR of the front end.");
  const link = (name: string) => button(name, "The diff of this pass", () => showPass(frame), { class: "link" });
  const rows = frame.rows.map(([name, place, made, removed, mark]) => {
    const about = mark === "~" ? mark : "";
    return [
      made ? `${about}+${count(made)}` : "",
      removed ? `${about}−${count(removed)}` : "",
      link(name),
      mark === "net" ? mark : place ? lineLink(capture, place) : "",
    ];
  });
  if (!rows.length) return h("p", { class: "faint" }, "None: it changed operations in place.");
  return h(
    "div",
    null,
    table([], rows, { class: "figures changes" }),
    frame.more ? h("p", { class: "faint" }, `${frame.more} more kinds or lines`) : null,
    frame.rows.some((row) => row[4] === "~") ? h("p", { class: "faint" }, "~ which of several is unknown") : null,
  );
}
