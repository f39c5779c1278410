// The pictures that commands draw of a kernel: its poster, its predicted time, and where the time of its compile went.
import { captureNumber, type App } from "../app";
import { command, copyButton, save } from "../copy";
import { button, h, svg } from "../dom";
import { alone } from "../graph/alone";
import { pictureOf } from "../graph/picture";

/** The poster of the current capture; null where the report has none. */
export function poster(app: App): HTMLElement | null {
  const { kernel, id, poster } = app.data.captures[captureNumber(app)]!;
  const words = ["draw", "poster", id, "-o", `${kernel}.png`];
  return figure(app, poster, "poster", `${kernel} at a glance`, `${kernel}.poster.svg`, words);
}

/** The predicted time of the current capture's launch, and the timeline of a CTA; null where nothing is predicted. */
export function predictedTime(app: App): HTMLElement | null {
  const { kernel, id, time } = app.data.captures[captureNumber(app)]!;
  const name = `${kernel}.predicted.svg`;
  return figure(app, time?.picture, "predicted time", `The predicted time of ${kernel}`, name, [
    "time",
    id,
    "-o",
    name,
  ]);
}

/** The flame graph of the current capture's compile; null where its parts were not timed. */
export function flameGraph(app: App): HTMLElement | null {
  const { kernel, id, flame } = app.data.captures[captureNumber(app)]!;
  const [title, name] = [`Where the time of ${kernel}'s compile went`, `${kernel}.time.svg`];
  return figure(app, flame, "flame graph", title, name, ["passes", id, "--time", "-o", name]);
}

function figure(
  app: App,
  text: number | undefined,
  what: string,
  title: string,
  name: string,
  words: string[],
): HTMLElement | null {
  if (text === undefined) return null;
  const { width, height, root } = pictureOf(app.data.lines(text).join("\n"));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, root);
  return h(
    "figure",
    { class: `${what === "poster" ? "poster" : "poster flame"} drawn`, "aria-label": title },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `${title}, to be scrolled` }, picture),
    h(
      "figcaption",
      null,
      button("SVG", `Save the ${what} as it is shown`, () =>
        save(name, alone(picture, width, height), "image/svg+xml"),
      ),
      copyButton("command", `Copy the command that draws this ${what}`, () => command(...words)),
    ),
  );
}
