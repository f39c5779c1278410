// What is shown of a line: aliases in place of their names, locations, attributes.
import { plain, type Diff } from "../data/diff";
import type { Kind } from "../data/model";

export interface Toggles {
  locations: boolean;
  aliases: boolean;
  attributes: boolean;
}

const DEFINITION = /^(?<name>[#!][A-Za-z_$][\w$]*) = (?<value>.*)$/;
const ALIAS = /[#!][A-Za-z_$][\w$]*(?![\w$.<])/g;
const LONGEST = 2000;
const DEPTH = 6;

/** The aliases that lines define, by name. */
export function definitions(lines: string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of lines) {
    if (line[0] !== "#" && line[0] !== "!") continue;
    const groups = DEFINITION.exec(line)?.groups;
    if (groups) found.set(groups["name"]!, groups["value"]!);
  }
  return found;
}

/** A line with its aliases resolved, those within them too, as far as is readable. */
export function resolved(line: string, known: Map<string, string>, depth = 0): string {
  if (!known.size || depth > DEPTH || (line.indexOf("#") < 0 && line.indexOf("!") < 0)) return line;
  const start = depth === 0 ? (DEFINITION.exec(line)?.groups?.["name"]?.length ?? 0) : 0;
  return (
    line.slice(0, start) +
    line.slice(start).replace(ALIAS, (name) => {
      const value = known.get(name);
      if (value === undefined) return name;
      const text = name.startsWith("#loc")
        ? value.replace(/^loc\((.*)\)$/, "$1").replace(/"(?:[^"\\]|\\.)*\/([^"/]+)"/g, '"$1"')
        : value;
      const inner = resolved(text, known, depth + 1);
      return inner.length > LONGEST ? name : inner;
    })
  );
}

/** A line of MLIR without any `loc(...)`, however deep; one within a string stays. */
export function withoutLocations(line: string): string {
  const short = plain(line);
  if (!short.includes("loc(") || short.startsWith("#")) return short;
  let kept = "";
  let done = 0;
  for (const match of short.matchAll(/ ?\bloc\(/g)) {
    if (match.index < done) continue;
    const end = closing(short, match.index + match[0].length);
    if (end < 0 || (short.slice(done, match.index).split('"').length - 1) % 2) continue;
    kept += short.slice(done, match.index);
    done = end;
  }
  return kept + short.slice(done);
}

function closing(line: string, from: number): number {
  let depth = 1;
  const parts = /"(?:[^"\\]|\\.)*"|[()]/g;
  parts.lastIndex = from;
  for (let match = parts.exec(line); match; match = parts.exec(line)) {
    if (match[0] === "(") depth++;
    else if (match[0] === ")" && --depth === 0) return match.index + 1;
  }
  return -1;
}

const GROUP = /"(?:[^"\\]|\\.)*"|[{}]/g;

/** A line of MLIR without its attribute dictionaries; a brace that opens a region stays. */
export function withoutAttributes(line: string): string {
  if (!line.includes("{") || /^[#!]/.test(line)) return line;
  let kept = "";
  let depth = 0;
  let done = 0;
  for (const match of line.matchAll(GROUP)) {
    const end = match.index + 1;
    if (match[0] === "{" && end < line.length) {
      if (!depth) kept += line.slice(done, match.index).replace(/(?: <?| attributes )$/, "");
      depth++;
    } else if (match[0] === "}" && depth) {
      depth--;
      done = line[end] === ">" && kept && !depth ? end + 1 : end;
    }
  }
  return depth ? line : kept + line.slice(done);
}

/** The lines of both sides as the toggles have them. */
export function shownLines(diff: Diff, toggles: Toggles): { left: string[]; right: string[] } {
  return {
    left: side(diff.left, diff.leftNumbers, () => diff.leftText, diff.kind, toggles),
    right: side(diff.right, diff.rightNumbers, () => diff.rightText, diff.kind, toggles),
  };
}

function side(
  lines: string[],
  numbers: ArrayLike<number>,
  allLines: () => string[],
  kind: Kind,
  toggles: Toggles,
): string[] {
  const shown = show(lines, kind === "mlir", toggles, lines);
  if (!toggles.locations) return shown;
  const text = allLines();
  // A right line has the left side's names, but its own location.
  const known = toggles.aliases ? definitions(text) : new Map<string, string>();
  return shown.map((line, index) => {
    const own = text[numbers[index]! - 1]!;
    const bare = plain(own);
    const location = own.startsWith(bare) ? own.slice(bare.length) : "";
    return location ? line + resolved(location, known) : line;
  });
}

function show(lines: string[], isMlir: boolean, toggles: Toggles, defining: string[]): string[] {
  if (!isMlir) return lines;
  let result = lines;
  if (!toggles.attributes) result = result.map(withoutAttributes);
  if (toggles.aliases) {
    const known = definitions(defining);
    result = result.map((line) => resolved(line, known));
  }
  return result;
}

const NOTHING_BUT_PLACES: Partial<Record<Kind, RegExp>> = {
  mlir: /^#loc/,
  llvm: /^!(?:\d+ = (?:distinct )?!DI|llvm\.dbg\.)/,
  ptx: /^\s*(?:\.(?:loc|file)\b|\$L__(?:tmp|func_)\w*:\s*$)/,
  amdgcn: /^\s*(?:\.(?:loc|file|cfi_\w+)\b|\.L(?:tmp|func_)\w*:\s*$)/,
  sass: /^\s*\/\/## File/,
};

// "        0010  B------:R-:W1:-:S01  G002:P0:U00:Q0  LDC R7, c[0x0][0x22c]"
const CONTROL_COLUMN = /^\s*[0-9a-f]{4,}\s+B[\d-]{6}:R[\d-]:W[\d-]:[Y-]:S\d\d\s+(?:G\d+:P\d+:U\d+:Q\d+\s+)?/;
const CONTROL = /B[\d-]{6}:R[\d-]:W[\d-]:[Y-]:S\d\d/;

/** The control information of a line of SASS; empty where it has none. */
export function controlOf(line: string): string {
  return CONTROL.exec(line)?.[0] ?? "";
}

/** A text as the toggles have it, with the 1-based line of the text that each row is. */
export function shownText(lines: string[], kind: Kind, toggles: Toggles): { lines: string[]; numbers: number[] } {
  const hidden = toggles.locations ? undefined : NOTHING_BUT_PLACES[kind];
  const numbers: number[] = [];
  const kept: string[] = [];
  lines.forEach((line, index) => {
    if (hidden?.test(line)) return;
    kept.push(
      toggles.locations
        ? line
        : kind === "mlir"
          ? withoutLocations(line)
          : kind === "llvm"
            ? plain(line)
            : kind === "sass"
              ? line.replace(CONTROL_COLUMN, "")
              : line,
    );
    numbers.push(index + 1);
  });
  return { lines: show(kept, kind === "mlir", toggles, lines), numbers };
}
