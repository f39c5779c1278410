import type { App, Tab } from "../app";
import { h } from "../dom";

export class LayoutsTab implements Tab {
  readonly name = "layouts";
  readonly title = "Layouts";
  readonly element = h("section");

  constructor(private readonly app: App) {}

  update(): void {
    void this.app;
  }
}
