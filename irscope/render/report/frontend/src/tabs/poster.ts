// The poster of a kernel, on top of its overview.
import { captureNumber, type App } from "../app";
import { command, copyButton, save } from "../copy";
import { button, h, svg } from "../dom";
import { alone } from "../graph/alone";
import { pictureOf } from "../graph/picture";

/** The poster of the current capture; null where the report has none. */
export function poster(app: App): HTMLElement | null {
  const number = captureNumber(app);
  const capture = app.data.captures[number]!;
  if (capture.poster === undefined) return null;
  const title = `${capture.kernel} at a glance`;
  const { width, height, root } = pictureOf(app.data.lines(capture.poster).join("\n"));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, root);
  const name = `${capture.kernel}.poster.svg`;
  return h(
    "figure",
    { class: "poster drawn", "aria-label": title },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `${title}, to be scrolled` }, picture),
    h(
      "figcaption",
      null,
      button("SVG", "Save the poster as it is shown", () => save(name, alone(picture, width, height), "image/svg+xml")),
      copyButton("command", "Copy the command that draws this poster", () =>
        command("draw", "poster", capture.id, "-o", `${capture.kernel}.png`),
      ),
    ),
  );
}
