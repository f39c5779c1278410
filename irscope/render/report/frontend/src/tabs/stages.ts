import type { App, Tab } from "../app";
import { h } from "../dom";

export class StagesTab implements Tab {
  readonly name = "stages";
  readonly title = "Stages";
  readonly element = h("section");

  constructor(private readonly app: App) {}

  update(): void {
    void this.app;
  }
}
