// Memory: what each operation asks of global and shared memory, and who holds shared memory when.
import { captureNumber, currentCapture, type App, type Tab } from "../app";
import { command, copyButton } from "../copy";
import { fill, h } from "../dom";
import { aboutInstructions, accessTable } from "../memory/accesses";
import { overTime } from "../memory/overtime";
import { sharedTable } from "../memory/shared";

export class MemoryTab implements Tab {
  readonly name = "memory";
  readonly title = "Memory";
  readonly element = h("section", { class: "memory", "aria-label": "Memory" });
  private shown = -1;

  constructor(private readonly app: App) {}

  enter(): void {
    this.app.keys.forTab("Memory", []);
  }

  update(): void {
    const number = captureNumber(this.app);
    if (number === this.shown) return;
    this.shown = number;
    const capture = currentCapture(this.app);
    if (!capture.stages.some((row) => row.stage === "ttgir"))
      return fill(
        this.element,
        h("p", { class: "remark" }, "The capture holds no TTGIR, from which accesses are read."),
      );
    const memory = this.app.data.memory(number);
    const costs = command("layout", capture.id, "--costs");
    const missing = aboutInstructions(memory);
    const again = command("report", capture.id, "--operations");
    const whatToRun = missing && !memory.reasons.length ? [" ", h("code", null, again)] : null;
    fill(
      this.element,
      h(
        "section",
        { class: "card" },
        h(
          "h2",
          null,
          "Global memory, the worst first ",
          copyButton("command", "Copy the command that lists it", () => costs),
        ),
        missing ? h("p", { class: "remark" }, missing, whatToRun) : null,
        accessTable(capture, memory),
      ),
      h("section", { class: "card" }, h("h2", null, "Shared memory, the worst first"), sharedTable(capture, memory)),
      h(
        "section",
        { class: "card" },
        h(
          "h2",
          null,
          "Memory over time ",
          copyButton("command", "Copy the command that draws it", () => command("layout", capture.id, "--memory")),
        ),
        overTime(capture, memory),
      ),
    );
  }
}
