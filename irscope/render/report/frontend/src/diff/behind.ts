// What is drawn before it is asked for lies behind what is shown. Coming to the front it is painted, no more: its
// styles and its layout are kept, since nothing that its elements inherit changes. `inert`, `visibility` and the like
// are inherited; `content-visibility` is not, and editors measure themselves in what it hides.

const FOCUSABLE = "[tabindex], a, button, input, summary";

export function isBehind(element: HTMLElement): boolean {
  return element.classList.contains("behind");
}

/** Puts an element behind the others, out of reach of the Tab key and of screen readers; again after it was drawn. */
export function putBehind(element: HTMLElement): void {
  element.classList.add("behind");
  element.ariaHidden = "true";
  for (const one of element.querySelectorAll<HTMLElement>(FOCUSABLE)) {
    if (one.tabIndex < 0) continue;
    one.tabIndex = -1;
    one.dataset["tab"] = "";
  }
}

export function bringToFront(element: HTMLElement): void {
  if (!isBehind(element)) return;
  element.classList.remove("behind", "unseen");
  element.ariaHidden = null;
  for (const one of element.querySelectorAll<HTMLElement>("[data-tab]")) {
    if (one.closest(".behind")) continue;
    one.tabIndex = 0;
    delete one.dataset["tab"];
  }
}

/** The browser's own search shall find nothing there. */
addEventListener("keydown", (event) => {
  if (!(event.key === "F3" || (event.key === "f" && (event.ctrlKey || event.metaKey)))) return;
  for (const one of document.querySelectorAll(".behind")) one.classList.add("unseen");
});
