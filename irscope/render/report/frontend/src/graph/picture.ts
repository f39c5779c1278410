// The text of a picture as elements: SVG that irscope or Graphviz wrote. What is not drawing is left out, and text stays text.
import { svg } from "../dom";

const ELEMENTS = new Set(["g", "path", "polygon", "polyline", "ellipse", "text", "rect", "line", "defs", "pattern"]);
const ATTRIBUTES = new Set(
  [
    ["class", "transform", "d", "points", "x", "y", "y2", "cx", "cy", "rx", "ry", "width", "height"],
    ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity"],
    ["text-anchor", "font-size", "font-weight", "font-style"],
    ["patternUnits", "patternTransform", "data-buffer"],
  ].flat(),
);
const PART = /<(\/?)([a-z]+)((?:\s+[\w:.-]+="[^"]*")*)\s*(\/?)>|([^<]+)/g;
const NO_ELEMENT = /<!--[\s\S]*?-->|<[?!][^>]*>/g;
const ENTITIES: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

export interface Picture {
  width: number;
  height: number;
  root: SVGGElement;
  /** What the titles name: `n3` of a node, `n3->n5` of an edge. */
  named: Map<string, SVGElement>;
}

/** The picture that a text of SVG describes. */
export function pictureOf(text: string): Picture {
  const picture: Picture = { width: 0, height: 0, root: svg("g"), named: new Map() };
  const stack: Element[] = [];
  for (const [, closes, tag, attributes, alone, words] of text.replace(NO_ELEMENT, "").matchAll(PART)) {
    const parent = stack.at(-1) ?? picture.root;
    if (words !== undefined) {
      if (parent.localName === "text") parent.append(plain(words));
      else if (parent.localName === "title") parent.append(plain(words).trim());
    } else if (closes) {
      const closed = stack.pop();
      const owner = closed?.localName === "title" ? stack.at(-1) : undefined;
      if (owner instanceof SVGElement) picture.named.set(closed?.textContent ?? "", owner);
    } else {
      const values = new Map(
        [...attributes!.matchAll(/([\w:.-]+)="([^"]*)"/g)].map((one) => [one[1]!, plain(one[2]!)]),
      );
      const box = tag === "svg" ? values.get("viewBox")?.split(" ").map(Number) : undefined;
      if (box) [picture.width, picture.height] = [box[2] ?? 0, box[3] ?? 0];
      // An element that is not drawn keeps its place, so that what is in it stands where it belongs.
      const made = svg(tag === "title" ? "title" : ELEMENTS.has(tag!) ? (tag as "g") : "g");
      for (const [name, value] of values)
        if (ATTRIBUTES.has(name) || (name === "id" && tag === "pattern")) made.setAttribute(name, value);
      if (tag !== "title" || parent.hasAttribute("data-buffer")) parent.append(made);
      if (!alone) stack.push(made);
    }
  }
  return picture;
}

function plain(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (all, decimal: string, hex: string, name: string) => {
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
    return name ? (ENTITIES[name] ?? all) : code <= 0x10ffff ? String.fromCodePoint(code) : "�";
  });
}
