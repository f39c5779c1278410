// What is looked at, kept in the URL's fragment: it can be sent, reloaded, and walked back and forth.

type Values = Record<string, string>;
type Listener = (changed: Set<string>) => void;

const QUIET_MS = 600;

/** What the fragment says; without one, what the page was written for. */
function read(): Values {
  const text = location.hash.slice(1) || (document.documentElement.dataset["opened"] ?? "");
  return Object.fromEntries(new URLSearchParams(text));
}

class State {
  private values: Values = read();
  private readonly listeners: Listener[] = [];
  /** When history was last made: the first step, and the first after a walk through history, always make some. */
  private pushed = -Infinity;

  constructor() {
    const follow = () => {
      const before = this.values;
      this.values = read();
      this.pushed = -Infinity;
      this.tell(differing(before, this.values));
    };
    addEventListener("popstate", follow);
    addEventListener("hashchange", follow);
  }

  text(name: string, otherwise = ""): string {
    return this.values[name] ?? otherwise;
  }

  number(name: string, otherwise = 0): number {
    const value = Number.parseInt(this.values[name] ?? "", 10);
    return Number.isFinite(value) ? value : otherwise;
  }

  flag(name: string): boolean {
    return this.values[name] === "1";
  }

  /** Changes values; null drops one. A step that follows another at once, or a quiet one, makes no history of its own. */
  set(changes: Record<string, string | number | boolean | null>, quiet = false): void {
    const before = this.values;
    this.values = { ...before };
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === false || value === "") delete this.values[name];
      else this.values[name] = value === true ? "1" : String(value);
    }
    const changed = differing(before, this.values);
    if (!changed.size) return;
    const now = performance.now();
    const fragment = `#${new URLSearchParams(this.values)}`;
    if (quiet || now - this.pushed < QUIET_MS) history.replaceState(null, "", fragment);
    else history.pushState(null, "", fragment);
    if (!quiet) this.pushed = now;
    this.tell(changed);
  }

  onChange(listener: Listener): void {
    this.listeners.push(listener);
  }

  private tell(changed: Set<string>): void {
    if (changed.size) for (const listener of this.listeners) listener(changed);
  }
}

function differing(one: Values, other: Values): Set<string> {
  const names = [...Object.keys(one), ...Object.keys(other)];
  return new Set(names.filter((name) => one[name] !== other[name]));
}

export const state = new State();
