import type { App, Tab } from "../app";
import { h } from "../dom";

export class CompareTab implements Tab {
  readonly name = "compare";
  readonly title = "Compare";
  readonly element = h("section");

  constructor(private readonly app: App) {}

  update(): void {
    void this.app;
  }
}
