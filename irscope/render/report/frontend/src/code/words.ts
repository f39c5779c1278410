// The words of each language that are coloured: one expression a language, run over the lines in sight alone.
import type { Kind } from "../data/model";

export interface Word {
  from: number;
  to: number;
  style: string;
}

const HASH = String.raw`(?<comment>#.*)`;
const STRING = String.raw`(?<string>"(?:[^"\\]|\\.)*"?)`;
const NUMBER = String.raw`(?<number>\b(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)`;

function language(...parts: string[]): RegExp {
  return new RegExp(parts.join("|"), "g");
}

const LANGUAGES: Record<Kind, RegExp> = {
  mlir: language(
    String.raw`(?<comment>\/\/.*|\bloc\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\))`,
    STRING,
    String.raw`(?<value>%[\w$.-]+)`,
    String.raw`(?<symbol>@[\w$.-]+)`,
    String.raw`(?<label>\^\w+)`,
    String.raw`(?<alias>[#!][A-Za-z_$][\w$.]*)`,
    String.raw`(?<type>\b(?:tensor|memref|vector|index|[su]?i\d+|bf16|f\d+\w*|none)\b|\d+x(?:\d+x)*\w+)`,
    String.raw`(?<op>\b[a-z_]\w*\.[a-z_][\w.]*)`,
    NUMBER,
  ),
  llvm: language(
    String.raw`(?<comment>;.*)`,
    STRING,
    String.raw`(?<value>%[\w$.-]+)`,
    String.raw`(?<symbol>@[\w$.-]+)`,
    String.raw`(?<label>^[\w$.-]+:)`,
    String.raw`(?<alias>![\w.]+|#\d+)`,
    String.raw`(?<type>\b(?:ptr|void|i\d+|half|bfloat|float|double|addrspace\(\d+\)|label|metadata)\b)`,
    String.raw`(?<op>(?<=^\s+(?:%\S+ = )?(?:tail )?)[a-z_]\w+)`,
    NUMBER,
  ),
  ptx: language(
    String.raw`(?<comment>\/\/.*)`,
    STRING,
    String.raw`(?<directive>^\s*\.\w+)`,
    String.raw`(?<value>%[\w.]+)`,
    String.raw`(?<label>\$L\w+)`,
    String.raw`(?<op>(?<=^\s*(?:@!?%\w+\s+)?)[a-z]\w*(?:\.[\w:]+)*)`,
    NUMBER,
  ),
  sass: language(
    String.raw`(?<comment>\/\/.*)`,
    STRING,
    String.raw`(?<label>\.L_\w+)`,
    String.raw`(?<control>B[\d-]{6}:R[\d-]:W[\d-]:[Y-]:S\d\d)`,
    String.raw`(?<faint>(?<=^\s*)[0-9a-f]{4,}(?=\s)|\bG\d+:P\d+:U\d+:Q\d+)`,
    String.raw`(?<spill>\b(?:LDL|STL)(?:\.\w+)*)`,
    String.raw`(?<value>\b(?:U?[RP]\d+|U?RZ|U?PT|SB\d|B\d+)\b)`,
    String.raw`(?<op>\b[A-Z][A-Z0-9]+(?:\.\w+)*)`,
    NUMBER,
  ),
  amdgcn: language(
    String.raw`(?<comment>;.*|\/\/.*)`,
    STRING,
    String.raw`(?<spill>\bscratch_\w+)`,
    String.raw`(?<directive>^\s*\.\w+)`,
    String.raw`(?<value>\b(?:[vsa]\d+|[vsa]\[\d+:\d+\]|vcc|exec|scc|m0)\b)`,
    String.raw`(?<label>\.L\w+)`,
    String.raw`(?<op>(?<=^\s*)[a-z]\w*)`,
    NUMBER,
  ),
  python: language(
    HASH,
    String.raw`(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`,
    String.raw`(?<symbol>@[\w.]+)`,
    String.raw`(?<op>\b(?:def|return|for|in|if|elif|else|while|import|from|as|with|class|pass|not|and|or|is|None|True|False|lambda|assert|raise|try|except)\b)`,
    String.raw`(?<type>\btl\.[\w.]+)`,
    NUMBER,
  ),
  text: /(?!)/g,
  binary: /(?!)/g,
};

const LONGEST = 4000;
const KEPT = 5000;

// From pass to pass, and from pane to pane, most lines stay.
const known = new Map<Kind, Map<string, Word[]>>();

/** The coloured words of a line. */
export function wordsOf(line: string, kind: Kind): Word[] {
  let lines = known.get(kind);
  if (!lines || lines.size > KEPT) known.set(kind, (lines = new Map()));
  let words = lines.get(line);
  if (!words) lines.set(line, (words = read(line, kind)));
  return words;
}

function read(line: string, kind: Kind): Word[] {
  const words: Word[] = [];
  const text = line.length > LONGEST ? line.slice(0, LONGEST) : line;
  for (const match of text.matchAll(LANGUAGES[kind])) {
    let style = "";
    for (const name in match.groups) {
      if (match.groups[name] !== undefined) {
        style = name;
        break;
      }
    }
    if (style && match[0]) words.push({ from: match.index, to: match.index + match[0].length, style });
  }
  return words;
}
