// What the tabs share: the data, the keys, and which capture is looked at.
import type { Capture } from "./data/model";
import type { Payload } from "./data/payload";
import type { Keys } from "./keys";
import { state } from "./state";

export interface App {
  data: Payload;
  keys: Keys;
}

export interface Tab {
  readonly name: string;
  readonly title: string;
  readonly element: HTMLElement;
  /** Called when the tab is shown, and when a value that it reads from the state has changed. */
  update(changed: Set<string>): void;
  /** What it shows, where that is not the capture that is chosen. */
  subject?(): string;
  /** Called once each time the tab comes to the front. */
  enter?(): void;
}

export function captureNumber(app: App): number {
  return Math.min(Math.max(state.number("c", 1) - 1, 0), app.data.captures.length - 1);
}

export function currentCapture(app: App): Capture {
  return app.data.captures[captureNumber(app)]!;
}
