// What is shown of a line: aliases in place of their names, locations, attributes.
import { marginsOf, type Plain } from "../data/columns";
import type { Diff } from "../data/diff";
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

/** A text: its lines, and those without locations. */
export interface Whole {
  lines(): string[];
  plain: Plain;
}

/** The lines of both sides as the toggles have them. */
export function shownLines(diff: Diff, texts: [Whole, Whole], toggles: Toggles): { left: string[]; right: string[] } {
  return {
    left: side(diff.left, diff.leftNumbers, texts[0], diff.kind, toggles),
    right: side(diff.right, diff.rightNumbers, texts[1], diff.kind, toggles),
  };
}

function side(lines: string[], numbers: number[], text: Whole, kind: Kind, toggles: Toggles): string[] {
  const shown = show(lines, kind === "mlir", toggles, lines);
  if (!toggles.locations) return shown;
  const all = text.lines();
  // A right line has the left side's names, but its own location.
  const known = toggles.aliases ? definitions(all) : new Map<string, string>();
  return shown.map((line, index) => {
    const number = numbers[index]!;
    const [, location] = marginsOf(all[number - 1] ?? "", text.plain.at(number));
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

/** A text as the toggles have it, with the 1-based line of the text that each row is. */
export function shownText(text: Whole, kind: Kind, toggles: Toggles): { lines: string[]; numbers: number[] } {
  const all = toggles.locations || toggles.aliases ? text.lines() : [];
  const lines = toggles.locations ? all : text.plain.lines;
  return {
    lines: show(lines, kind === "mlir", toggles, all),
    numbers: toggles.locations ? lines.map((_, at) => at + 1) : text.plain.numbers,
  };
}
