// Asks a worker for texts and diffs, one after the other, the most urgent first. Where there can be no worker the page
// does that work itself.
import type { Answer, Asked, Told } from "../comparing";
import type { TextRow } from "./model";

declare global {
  /** Runs a packed script of the page as a worker. Of the loader. */
  var irscopeWorker: ((id: string) => Promise<Worker>) | undefined;
}

/** What is known here of the page's data. */
interface Source {
  rows: TextRow[];
  bytes(chunk: number): Uint8Array;
  has(asked: Asked): boolean;
  take(asked: Asked, answer: Answer): void;
}

export class Ahead {
  /** Called after each answer, and when it turns out that there will be none. */
  onAnswer: () => void = () => undefined;
  private isBroken = !globalThis.Worker || !globalThis.irscopeWorker;
  private worker: Worker | undefined;
  private isStarting = false;
  /** What is still to be asked. */
  private queue: Asked[] = [];
  private outstanding: Asked | undefined;
  private readonly toldChunks = new Set<number>();

  constructor(private readonly source: Source) {}

  /** Whether a worker answers, as far as is known. */
  get works(): boolean {
    return !this.isBroken;
  }

  /** Asks for what is not known, in this order; what was asked before and is under way is finished. */
  ask(wanted: Asked[]): void {
    if (this.isBroken) return;
    this.queue = wanted;
    if (this.worker) this.next();
    else void this.start();
  }

  private async start(): Promise<void> {
    if (this.isStarting) return;
    this.isStarting = true;
    try {
      const worker = await globalThis.irscopeWorker!("comparing");
      worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => this.answered(data));
      worker.addEventListener("error", (event) => {
        event.preventDefault();
        this.fail();
      });
      this.worker = worker;
      this.tell({ rows: this.source.rows });
      this.next();
    } catch {
      this.fail();
    }
  }

  private next(): void {
    if (this.outstanding || this.isBroken) return;
    let asked = this.queue.shift();
    while (asked && this.source.has(asked)) asked = this.queue.shift();
    if (!asked) return;
    this.outstanding = asked;
    for (const text of "text" in asked ? [asked.text] : [asked.left, asked.right]) this.tellChunks(text);
    this.tell(asked);
  }

  /** Sends the chunks that hold a text and what it is made from. */
  private tellChunks(text: number): void {
    for (let row = this.source.rows[text]; row; row = this.source.rows[row[4]]) {
      const [chunk] = row;
      if (this.toldChunks.has(chunk)) continue;
      this.toldChunks.add(chunk);
      this.tell({ chunk, bytes: this.source.bytes(chunk) });
    }
  }

  private tell(told: Told): void {
    this.worker?.postMessage(told);
  }

  private answered(answer: Answer): void {
    const asked = this.outstanding;
    this.outstanding = undefined;
    if (!asked) return;
    this.source.take(asked, answer);
    this.next();
    this.onAnswer();
  }

  private fail(): void {
    this.isBroken = true;
    this.queue = [];
    this.worker?.terminate();
    this.onAnswer();
  }
}
