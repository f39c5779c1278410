// Keys: each with what it does, so that the help is never behind.
import { h } from "./dom";

export interface Key {
  keys: string[];
  text: string;
  run(event: KeyboardEvent): void;
}

export class Keys {
  private readonly everywhere: Key[] = [];
  private here: Key[] = [];
  private title = "";

  constructor() {
    addEventListener("keydown", (event) => this.press(event));
  }

  /** Keys of the whole page. */
  always(...keys: Key[]): void {
    this.everywhere.push(...keys);
  }

  /** Keys of the tab that is shown. */
  forTab(title: string, keys: Key[]): void {
    this.title = title;
    this.here = keys;
  }

  help(): void {
    const rows = (keys: Key[]) =>
      keys.map((key) =>
        h(
          "tr",
          null,
          h(
            "td",
            null,
            key.keys.map((name) => h("kbd", null, name)),
          ),
          h("td", null, key.text),
        ),
      );
    const dialog = h(
      "dialog",
      { class: "help", "aria-label": "Keys" },
      h("h2", null, "Keys"),
      h("table", null, h("tbody", null, rows(this.everywhere))),
      this.here.length ? [h("h3", null, this.title), h("table", null, h("tbody", null, rows(this.here)))] : null,
      h("p", null, "In a code pane: Ctrl F searches, the arrow keys scroll, Tab goes to the next pane."),
      h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")),
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = event.target as HTMLElement;
    const typing = target.matches("input, textarea, select") || target.closest(".cm-search") !== null;
    if (typing) {
      if (event.key === "Escape") target.blur();
      return;
    }
    // Within a code pane the arrow keys move through the code.
    if (event.key.startsWith("Arrow") && target.closest(".cm-editor")) return;
    const key = [...this.here, ...this.everywhere].find((one) => one.keys.includes(event.key));
    if (!key) return;
    event.preventDefault();
    key.run(event);
  }
}
