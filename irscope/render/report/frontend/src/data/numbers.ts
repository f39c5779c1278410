// Numbers of names that a text holds as steps, as irscope/render/report/texts.py tells them.

const STEP =
  /(?<![^\n])( *)(%[A-Za-z_]\w*_|%[a-z]{0,2}|!|#loc)([+-]\d+)(?!\w)|(%[A-Za-z_]\w*_|%[a-z]{0,2}|!|#loc)([+-]\d+)(?!\w)/gm;

/** The lines of a text with their numbers again. */
export function withNumbers(lines: string[]): string[] {
  const last = new Map<string, number>();
  const number = (_: string, start: string | undefined, first: string, own: string, other: string, step: string) => {
    const begins = start !== undefined;
    const prefix = begins ? first : other;
    const kind = prefix.endsWith("_") ? "_" : prefix;
    const before = last.get(kind) ?? 0;
    const found = before + Number(begins ? own : step);
    if (begins || kind === "!" || kind === "#loc" || (found > before && /[a-z]$/.test(kind))) last.set(kind, found);
    return `${start ?? ""}${prefix}${found}`;
  };
  return lines.join("\n").replace(STEP, number).split("\n");
}
