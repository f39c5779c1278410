// The poster of a kernel, on top of its overview.
import { captureNumber, type App } from "../app";
import { command, copyButton, save } from "../copy";
import { button, h, svg } from "../dom";
import { pictureOf } from "../graph/picture";

/** What a picture on its own needs of the page's style. */
const LOOKS = [
  ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray"],
  ["font-family", "font-weight"],
].flat();

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
    { class: "poster", "aria-label": title },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `${title}, to be scrolled` }, picture),
    h(
      "figcaption",
      null,
      button("SVG", "Save the poster as it is shown", () => save(name, alone(picture, width, height), "image/svg+xml")),
      copyButton("command", "Copy the command that draws this poster", () =>
        command("poster", capture.id, "-o", `${capture.kernel}.png`),
      ),
    ),
  );
}

/** A picture as a file of its own: each element with the looks that the page gives it. */
function alone(picture: SVGSVGElement, width: number, height: number): string {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const copied = copy.querySelectorAll<SVGElement>("[class]");
  picture.querySelectorAll<SVGElement>("[class]").forEach((shown, at) => {
    const style = getComputedStyle(shown);
    for (const look of LOOKS) copied[at]!.setAttribute(look, style.getPropertyValue(look));
    copied[at]!.removeAttribute("class");
  });
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(copy);
}
