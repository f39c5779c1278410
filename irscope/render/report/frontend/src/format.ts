// Numbers and names as people read them.

const COUNT = new Intl.NumberFormat("en");

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : COUNT.format(value);
}

export function milliseconds(us: number | null | undefined): string {
  if (us === null || us === undefined) return "–";
  return us >= 100_000 ? `${COUNT.format(Math.round(us / 1000))} ms` : `${(us / 1000).toFixed(us < 10_000 ? 2 : 1)} ms`;
}

export function signed(value: number | null | undefined): string {
  if (!value) return "";
  return value > 0 ? `+${COUNT.format(value)}` : `−${COUNT.format(-value)}`;
}

export function bytes(value: number): string {
  return value < 10_000 ? `${COUNT.format(value)} B` : `${(value / 1024).toFixed(value < 102_400 ? 1 : 0)} KiB`;
}

export function percent(fraction: number): string {
  return `${Math.round(100 * fraction)} %`;
}

export function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1) || path;
}

export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
}

export function shown(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
