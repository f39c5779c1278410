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

/** One decimal, as Python rounds for all other output: of a tie (56.25) the even one. */
export function tenths(value: number): number {
  const rounded = Math.round(10 * value);
  return (Math.abs((10 * value) % 1) === 0.5 && rounded % 2 ? rounded - 1 : rounded) / 10;
}

/** As `irscope/render/text/tables.py` has it: one decimal where there is one. */
export function percent(fraction: number): string {
  const value = tenths(100 * fraction);
  if (value === 0 && fraction > 0) return "< 0.1 %";
  if (value === 100 && fraction < 1) return "> 99.9 %";
  return `${value} %`;
}

const PERCENT = "_percent";

/** A resource's name in words; a share goes without its unit, which stands beside the figure. */
export function resourceTitle(name: string): string {
  return (name.endsWith(PERCENT) ? name.slice(0, -PERCENT.length) : name).replaceAll("_", " ");
}

/** A resource; shares (`occupancy_percent`) as shares. */
export function resourceValue(name: string, value: unknown): string {
  if (typeof value !== "number") return shown(value);
  return name.endsWith(PERCENT) ? percent(value / 100) : count(value);
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
