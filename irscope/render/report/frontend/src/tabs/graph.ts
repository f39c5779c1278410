import type { App, Tab } from "../app";
import { h } from "../dom";

export class GraphTab implements Tab {
  readonly name = "graph";
  readonly title = "Graph";
  readonly element = h("section");

  constructor(private readonly app: App) {}

  update(): void {
    void this.app;
  }
}
