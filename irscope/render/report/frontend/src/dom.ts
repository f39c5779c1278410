// Makes elements. Text only ever becomes text nodes: there is no way to pass markup.

type Child = Node | string | number | null | undefined | false | Child[];
type Value = string | number | boolean | null | undefined | ((event: never) => void);

export type Props = Record<string, Value>;

/** An element; properties that begin with "on" are listeners, `true` is an empty attribute, null and false none. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  append(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  apply(element, props);
  append(element, children);
  return element;
}

function apply(element: Element, props: Props | null | undefined): void {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2).toLowerCase(), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/** Empties an element and fills it again. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** A table from rows of cells. */
export function table(head: string[], rows: Child[][], props: Props = {}): HTMLTableElement {
  return h(
    "table",
    props,
    head.length
      ? h(
          "thead",
          null,
          h(
            "tr",
            null,
            head.map((name) => (name ? h("th", { scope: "col" }, name) : h("td"))),
          ),
        )
      : null,
    h(
      "tbody",
      null,
      rows.map((cells) =>
        h(
          "tr",
          null,
          cells.map((cell) => h("td", null, cell)),
        ),
      ),
    ),
  );
}

export function button(label: string, title: string, action: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", title, onclick: action, ...props }, label);
}

/** A button that stays pressed. */
export function toggle(label: string, title: string, on: boolean, change: (on: boolean) => void): HTMLButtonElement {
  const made = h("button", { type: "button", title, "aria-pressed": String(on), class: "toggle" }, label);
  made.addEventListener("click", () => {
    const now = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(now));
    change(now);
  });
  return made;
}

export function select(label: string, options: [string, string][], chosen: string, change: (value: string) => void) {
  const made = h(
    "select",
    { "aria-label": label, title: label },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
  made.addEventListener("change", () => change(made.value));
  return made;
}
