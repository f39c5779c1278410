// A picture of the page as a file of its own.

/** What a picture on its own needs of the page's style. */
const LOOKS = [
  ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray"],
  ["font-family", "font-weight"],
].flat();

/** A picture as a file of its own: each element with the looks that the page gives it. */
export function alone(picture: SVGSVGElement, width: number, height: number): string {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const copied = copy.querySelectorAll<SVGElement>("[class]");
  picture.querySelectorAll<SVGElement>("[class]").forEach((shown, at) => {
    const style = getComputedStyle(shown);
    for (const look of LOOKS) copied[at]!.setAttribute(look, style.getPropertyValue(look));
    copied[at]!.removeAttribute("class");
  });
  for (const name of ["class", "hidden"]) copy.removeAttribute(name);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(copy);
}
